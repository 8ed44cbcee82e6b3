// Package layout says where the tool keeps its files.
package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DefaultState holds what belongs to one cluster: keys, data, logs, pids.
const DefaultState = "/var/lib/sharedos-localcluster"

// DefaultRun holds sockets and mounts, which must not outlive a reboot and
// whose paths must be short enough for a socket.
const DefaultRun = "/run/sharedos-localcluster"

// Layout is the set of folders everything else is found in.
type Layout struct {
	// Source is the folder of the tool's own module.
	Source string
	// Cache holds built programs and images; it outlives clusters.
	Cache string
	// State holds one cluster; removing it removes the cluster.
	State string
	// Run holds sockets and mounts of the running cluster.
	Run string
}

// New fills the folders the caller left empty with their defaults.
func New(source, cache, state string) (Layout, error) {
	l := Layout{Source: source, Cache: cache, State: state, Run: DefaultRun}
	var err error
	if l.Source == "" {
		if l.Source, err = findSource(); err != nil {
			return Layout{}, err
		}
	}
	if l.Cache == "" {
		if l.Cache, err = defaultCache(os.Getenv); err != nil {
			return Layout{}, err
		}
	}
	if l.State == "" {
		l.State = DefaultState
	}
	for _, p := range []*string{&l.Source, &l.Cache, &l.State} {
		if *p, err = filepath.Abs(*p); err != nil {
			return Layout{}, fmt.Errorf("resolve folder: %w", err)
		}
	}
	if l.State == "/" || filepath.Dir(l.State) == "/" {
		return Layout{}, fmt.Errorf("state folder %s is too close to the root: `down` removes it; choose one further down", l.State)
	}
	return l, nil
}

func defaultCache(getenv func(string) string) (string, error) {
	base := getenv("SHAREDOS_CACHE")
	if base == "" {
		if xdg := getenv("XDG_CACHE_HOME"); xdg != "" {
			base = filepath.Join(xdg, "sharedos")
		} else if home := getenv("HOME"); home != "" {
			base = filepath.Join(home, ".cache", "sharedos")
		} else {
			return "", errors.New("no cache folder: set SHAREDOS_CACHE or HOME, or pass --cache-dir")
		}
	}
	return filepath.Join(base, "localcluster"), nil
}

// findSource looks for the module's folder: first where this file was
// compiled, which holds for `go run`, then upwards from the working folder.
func findSource() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		dir := filepath.Join(filepath.Dir(file), "..", "..")
		if isSource(dir) {
			return dir, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find working folder: %w", err)
	}
	for {
		for _, candidate := range []string{dir, filepath.Join(dir, "test", "localcluster")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find the folder test/localcluster: run inside the repository or pass --source-dir")
		}
		dir = parent
	}
}

func isSource(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "binaries", "kubernetes", "go.mod"))
	return filepath.IsAbs(dir) && err == nil
}

// Pids is the folder of the process records.
func (l Layout) Pids() string { return filepath.Join(l.State, "pids") }

// Logs is the folder of the daemons' logs.
func (l Layout) Logs() string { return filepath.Join(l.State, "logs") }

// PKI is the folder of keys and certificates.
func (l Layout) PKI() string { return filepath.Join(l.State, "pki") }

// Config is the folder of rendered configuration files.
func (l Layout) Config() string { return filepath.Join(l.State, "config") }

// Kubeconfig is the file of the cluster administrator.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// Volumes is the folder behind the ready-made persistent volumes.
func (l Layout) Volumes() string { return filepath.Join(l.State, "volumes") }

// ContainerdSocket is where containerd listens.
func (l Layout) ContainerdSocket() string { return filepath.Join(l.Run, "containerd.sock") }

// RuncRoot is where runc keeps the state of containers.
func (l Layout) RuncRoot() string { return filepath.Join(l.Run, "runc") }
