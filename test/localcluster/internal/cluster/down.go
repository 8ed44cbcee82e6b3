package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/host"
	"github.com/sharedos-dev/operator/test/localcluster/internal/lock"
)

const (
	// containersLimit is how long removing all containers may take before
	// they are removed without containerd.
	containersLimit = 30 * time.Second
	shimProgram     = "containerd-shim-runc-v2"
	// removeGrace is short: nothing of what a daemon could still save is kept.
	removeGrace = 2 * time.Second
	// podLogLinks is where every kubelet puts links to its pods' logs.
	podLogLinks = "/var/log/containers"
)

// Down stops everything the cluster started and removes everything it left,
// except the cache. It needs no running cluster.
func (c *Cluster) Down(ctx context.Context) error {
	if err := requireRoot(); err != nil {
		return err
	}
	unlock, err := lock.Acquire(ctx, c.lockFile(), func() { c.logf("waiting for another run of this tool …") })
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(c.Layout.State); errors.Is(err, os.ErrNotExist) {
		c.logf("there is no cluster")
	}
	start := time.Now()
	if err := c.remove(ctx); err != nil {
		return err
	}
	c.logf("cluster is down after %s", time.Since(start).Round(100*time.Millisecond))
	return nil
}

// remove goes through every step even if one fails, because the next ones
// make the machine cleaner all the same. The state folder, with the records of
// processes, goes only when all went well.
func (c *Cluster) remove(ctx context.Context) error {
	var errs []error
	step := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	shim := c.shimPath()
	for _, name := range stopOrder {
		if name == "containerd" {
			step(c.removeContainers(ctx))
		}
		step(c.procs.Stop(name, removeGrace))
	}
	step(c.sweepContainers(ctx, shim))
	step(host.UnmountBelow(c.Layout.State, c.Layout.Run))
	step(c.network().Remove(ctx))
	step(c.removePodLogLinks(podLogLinks))
	host.RemoveCgroups()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove cluster: %w", err)
	}
	for _, dir := range []string{c.Layout.Run, c.Layout.State} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove cluster: %w", err)
		}
	}
	return nil
}

// shimPath is the shim of the containerd that was recorded, if any.
func (c *Cluster) shimPath() string {
	r, err := c.procs.Load("containerd")
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(r.Exe), shimProgram)
}

// removeContainers removes all containers through containerd, if it runs. A
// failure is only told: sweepContainers removes what is left.
func (c *Cluster) removeContainers(ctx context.Context) error {
	r, running := c.procs.Running("containerd")
	if !running {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, containersLimit)
	defer cancel()
	dir := filepath.Dir(r.Exe)
	for _, kind := range []string{"tasks", "containers"} {
		list, err := c.ctr(ctx, dir, kind, "list", "--quiet")
		if err != nil {
			c.logf("containerd does not answer, so its containers are removed without it: %v", err)
			return nil
		}
		ids := strings.Fields(list)
		if len(ids) == 0 {
			continue
		}
		args := []string{kind, "delete"}
		if kind == "tasks" {
			args = append(args, "--force")
		}
		if _, err := c.ctr(ctx, dir, append(args, ids...)...); err != nil {
			c.logf("some %s are left to remove without containerd: %v", kind, err)
		}
	}
	return nil
}

// sweepContainers ends containers and shims that outlived their containerd.
func (c *Cluster) sweepContainers(ctx context.Context, shim string) error {
	var errs []error
	root := filepath.Join(c.Layout.RuncRoot(), ContainerdNamespace)
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("list containers of runc: %w", err))
	}
	for _, entry := range entries {
		cmd := exec.CommandContext(ctx, "runc", "--root", root, "delete", "--force", entry.Name())
		cmd.Env = append(os.Environ(), "PATH="+host.Path())
		if out, err := cmd.CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("remove container %s: %w: %s", entry.Name(), err, strings.TrimSpace(string(out))))
		}
	}
	if shim != "" {
		for _, r := range c.procs.FindByExe(shim, c.Layout.ContainerdSocket()) {
			errs = append(errs, c.procs.Kill(r, 0))
		}
	}
	return errors.Join(errs...)
}

// removePodLogLinks removes links to the logs that go with the state folder.
func (c *Cluster) removePodLogLinks(dir string) error {
	links, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return fmt.Errorf("list links to pod logs: %w", err)
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, c.Layout.State+"/") {
			continue
		}
		if err := os.Remove(link); err != nil {
			return fmt.Errorf("remove link to pod log: %w", err)
		}
	}
	return nil
}
