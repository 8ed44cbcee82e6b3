package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/test/localcluster/internal/build"
	"github.com/sharedos-dev/operator/test/localcluster/internal/image"
)

// The images are never in a registry: the name's ending is reserved for tests.
const (
	pauseImage   = "localcluster.test/pause:" + build.PauseVersion
	corednsImage = "localcluster.test/coredns:" + build.CoreDNSVersion
)

// Programs are the folders of built programs, and the image archives.
type Programs struct {
	Etcd, Kubernetes, Containerd string
	// Archives maps an image to the archive that holds it.
	Archives map[string]string
}

// EnsurePrograms builds what is not in the cache yet.
func (c *Cluster) EnsurePrograms(ctx context.Context) (Programs, error) {
	b := build.Builder{Cache: c.Layout.Cache, Progress: c.Progress}
	etcd, err := build.Etcd(c.Layout.Source)
	if err != nil {
		return Programs{}, err
	}
	kubernetes, err := build.Kubernetes(c.Layout.Source)
	if err != nil {
		return Programs{}, err
	}
	dirs := map[string]string{}
	for _, component := range []build.Component{etcd, kubernetes, build.Containerd(), build.CoreDNS(), build.Pause(c.Layout.Source)} {
		if dirs[component.Name], err = b.Ensure(ctx, component); err != nil {
			return Programs{}, err
		}
	}
	p := Programs{Etcd: dirs["etcd"], Kubernetes: dirs["kubernetes"], Containerd: dirs["containerd"], Archives: map[string]string{}}
	for ref, name := range map[string]string{pauseImage: "pause", corednsImage: "coredns"} {
		archive := filepath.Join(c.Layout.Cache, "images", filepath.Base(dirs[name])+".tar")
		if _, err := os.Stat(archive); err != nil {
			if err := image.WriteArchive(archive, filepath.Join(dirs[name], name), ref); err != nil {
				return Programs{}, err
			}
		}
		p.Archives[ref] = archive
	}
	return p, nil
}

// ctr calls containerd's client in the kubelet's namespace.
func (c *Cluster) ctr(ctx context.Context, containerdDir string, args ...string) (string, error) {
	args = append([]string{"--address", c.Layout.ContainerdSocket(), "--namespace", ContainerdNamespace}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(containerdDir, "ctr"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args[4:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// loadOwnImages imports the images every pod needs unless they are there.
func (c *Cluster) loadOwnImages(ctx context.Context, p Programs) error {
	out, err := c.ctr(ctx, p.Containerd, "images", "list", "--quiet")
	if err != nil {
		return err
	}
	present := strings.Fields(out)
	for ref, archive := range p.Archives {
		if slices.Contains(present, ref) {
			continue
		}
		if _, err := c.ctr(ctx, p.Containerd, "images", "import", archive); err != nil {
			return fmt.Errorf("load image %s: %w", ref, err)
		}
	}
	return nil
}

// Load imports image archives into the running cluster.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	r, running := c.procs.Running("containerd")
	if !running {
		return errors.New("the cluster is not up: run `up` first")
	}
	for _, archive := range archives {
		out, err := c.ctr(ctx, filepath.Dir(r.Exe), "images", "import", archive)
		if err != nil {
			return fmt.Errorf("load %s: %w", archive, err)
		}
		for line := range strings.Lines(out) {
			// The rest is about digests and speed.
			if name, ok := strings.CutSuffix(strings.TrimSpace(line), "saved"); ok {
				c.logf("loaded %s", strings.TrimSpace(name))
			}
		}
	}
	return nil
}
