// Package build turns pinned Go modules into the programs of a cluster, and
// keeps them in a cache keyed by version and by everything else that goes in.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Versions of the programs that are built straight from a published module.
// The others are pinned by the go.mod of their folder under binaries.
const (
	ContainerdVersion = "v2.4.2"
	CoreDNSVersion    = "v1.15.0"
	PauseVersion      = "v1"
)

// Component is one build: a folder with a main package, or packages of a
// published module.
type Component struct {
	// Name is also the name of the program where Dir is set.
	Name string
	// Version is the released version of what is built.
	Version string
	// Dir is a folder with a main package.
	Dir string
	// Packages are built with `go install` where Dir is empty.
	Packages []string
	// Links are further names the program answers to.
	Links []string
	// Tags and LDFlags go to the compiler and the linker.
	Tags, LDFlags string
	// Hint tells how long the first build takes on two cores.
	Hint string
}

// Kubernetes is every Kubernetes program in one executable.
func Kubernetes(source string) (Component, error) {
	dir := filepath.Join(source, "binaries", "kubernetes")
	version, err := requiredVersion(dir, "k8s.io/kubernetes")
	if err != nil {
		return Component{}, err
	}
	return Component{
		Name: "kubernetes", Version: version, Dir: dir,
		Links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"},
		LDFlags: kubernetesVersionFlags(version),
		Hint:    "the first time 5 to 7 minutes",
	}, nil
}

// Etcd is the store behind the API server.
func Etcd(source string) (Component, error) {
	dir := filepath.Join(source, "binaries", "etcd")
	version, err := requiredVersion(dir, "go.etcd.io/etcd/server/v3")
	if err != nil {
		return Component{}, err
	}
	return Component{Name: "etcd", Version: version, Dir: dir, Hint: "the first time about 40 seconds"}, nil
}

// Containerd is the container runtime, its shim and its client.
func Containerd() Component {
	const module = "github.com/containerd/containerd/v2/cmd/"
	return Component{
		Name: "containerd", Version: ContainerdVersion,
		Packages: []string{module + "containerd", module + "containerd-shim-runc-v2", module + "ctr"},
		Tags:     "no_btrfs,no_zfs,no_devmapper,no_aufs",
		Hint:     "the first time about 70 seconds",
	}
}

// CoreDNS is the cluster's name server.
func CoreDNS() Component {
	return Component{
		Name: "coredns", Version: CoreDNSVersion,
		Packages: []string{"github.com/coredns/coredns"},
		Hint:     "the first time about 2 minutes",
	}
}

// Pause is the process that holds a pod's namespaces.
func Pause(source string) Component {
	return Component{Name: "pause", Version: PauseVersion, Dir: filepath.Join(source, "pause"), Hint: "a few seconds"}
}

// kubernetesVersionFlags sets what a release build sets: without them the
// server reports v0.0.0 and clients cannot tell what it supports.
func kubernetesVersionFlags(version string) string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	var flags []string
	set := func(name, value string) { flags = append(flags, "-X "+pkg+name+"="+value) }
	set("gitVersion", version)
	set("gitMajor", parts[0])
	set("gitMinor", parts[1])
	set("gitTreeState", "clean")
	set("gitCommit", version)
	set("buildDate", "1970-01-01T00:00:00Z")
	return strings.Join(flags, " ")
}

// requiredVersion reads the version of module that dir/go.mod asks for.
func requiredVersion(dir, module string) (string, error) {
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read pinned version of %s: %w", module, err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.Count(fields[1], ".") >= 2 {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, module)
}

// Key names the component's folder in the cache. It changes with the version,
// the flags, the platform and every source file of a local folder.
func (c Component) Key() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %q %q %q %q %s\n", c.Name, c.Version, c.Packages, c.Links, c.Tags, c.LDFlags, runtime.GOARCH)
	if c.Dir != "" {
		if err := hashFolder(h, c.Dir); err != nil {
			return "", fmt.Errorf("hash sources of %s: %w", c.Name, err)
		}
	}
	return fmt.Sprintf("%s-%s-%s", c.Name, c.Version, hex.EncodeToString(h.Sum(nil))[:12]), nil
}

func hashFolder(w io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries { // ReadDir sorts by name
		name := entry.Name()
		keep := filepath.Ext(name) == ".go" || name == "go.mod" || name == "go.sum"
		if entry.IsDir() || !keep || strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s %d\n", name, len(data))
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// programs lists the files the component leaves in its folder.
func (c Component) programs() []string {
	if c.Dir != "" {
		return append([]string{c.Name}, c.Links...)
	}
	names := make([]string, 0, len(c.Packages))
	for _, p := range c.Packages {
		names = append(names, p[strings.LastIndex(p, "/")+1:])
	}
	slices.Sort(names)
	return names
}
