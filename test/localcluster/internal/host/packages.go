// Package host prepares the machine for a cluster and tidies it afterwards.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// cniDirs are where distributions put the network plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// tools maps the programs a cluster needs to the Debian packages they are in.
var tools = map[string]string{
	"runc":      "runc",
	"ip":        "iproute2",
	"iptables":  "iptables",
	"conntrack": "conntrack",
	"nft":       "nftables",
}

const cniPackage = "containernetworking-plugins"

// Path is the search path of the tool and of all daemons. The folders of the
// administrator's programs are often missing from a caller's own path.
func Path() string {
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// EnsurePackages installs what is missing and returns the folder of the
// network plugins.
func EnsurePackages(ctx context.Context, progress io.Writer) (cniDir string, err error) {
	missing := missingPackages(cniDirs)
	if len(missing) > 0 {
		command := "apt-get install -y --no-install-recommends " + strings.Join(missing, " ")
		if os.Geteuid() != 0 {
			return "", fmt.Errorf("missing packages; run as root: %s", command)
		}
		if _, err := exec.LookPath("apt-get"); err != nil {
			return "", fmt.Errorf("missing programs, and no apt-get to install them with; install what your distribution calls: %s", strings.Join(missing, " "))
		}
		fmt.Fprintf(progress, "installing packages: %s\n", strings.Join(missing, " "))
		if err := aptInstall(ctx, missing); err != nil {
			return "", fmt.Errorf("install packages (try `%s` by hand): %w", command, err)
		}
		if still := missingPackages(cniDirs); len(still) > 0 {
			return "", fmt.Errorf("programs of these packages are still not found: %s", strings.Join(still, " "))
		}
	}
	dir, ok := findCNI(cniDirs)
	if !ok {
		return "", errors.New("network plugins are not found")
	}
	return dir, nil
}

func missingPackages(cniDirs []string) []string {
	var missing []string
	for tool, pkg := range tools {
		if _, err := lookPath(tool); err != nil {
			missing = append(missing, pkg)
		}
	}
	if _, ok := findCNI(cniDirs); !ok {
		missing = append(missing, cniPackage)
	}
	slices.Sort(missing)
	return missing
}

// findCNI returns the first folder that holds every plugin the cluster uses.
func findCNI(dirs []string) (string, bool) {
	for _, dir := range dirs {
		found := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
				found = false
			}
		}
		if found {
			return dir, true
		}
	}
	return "", false
}

func aptInstall(ctx context.Context, packages []string) error {
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if _, err := run(ctx, nil, "apt-get", install...); err == nil {
		return nil
	}
	// The lists of packages may be missing or old: fetch them and try again.
	if _, err := run(ctx, nil, "apt-get", "update"); err != nil {
		return err
	}
	_, err := run(ctx, nil, "apt-get", install...)
	return err
}

// lookPath finds a program in Path, whatever the caller's own path is.
func lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(Path()) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// run calls a program and returns its output, which an error includes.
func run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	file, err := lookPath(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Stdin = stdin
	cmd.Env = append(os.Environ(), "PATH="+Path(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
