package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/config"
	"github.com/sharedos-dev/operator/test/localcluster/internal/files"
	"github.com/sharedos-dev/operator/test/localcluster/internal/host"
	"github.com/sharedos-dev/operator/test/localcluster/internal/lock"
	"github.com/sharedos-dev/operator/test/localcluster/internal/pki"
)

// Up makes the cluster run. What already runs is left alone, what died is
// started again, and what cannot be repaired is removed and started anew.
func (c *Cluster) Up(ctx context.Context) error {
	if err := requireRoot(); err != nil {
		return err
	}
	programs, err := c.EnsurePrograms(ctx)
	if err != nil {
		return err
	}
	unlock, err := lock.Acquire(ctx, c.lockFile(), func() { c.logf("waiting for another run of this tool …") })
	if err != nil {
		return err
	}
	defer unlock()
	cniDir, err := host.EnsurePackages(ctx, c.Progress)
	if err != nil {
		return err
	}

	start := time.Now()
	existed := c.usable()
	if !existed {
		if err := c.removeLeftovers(ctx); err != nil {
			return err
		}
	}
	err = c.converge(ctx, programs, cniDir)
	if err != nil && existed && ctx.Err() == nil {
		c.logf("the cluster cannot be repaired, so it starts anew, empty: %v", err)
		if err := c.remove(ctx); err != nil {
			return err
		}
		err = c.converge(ctx, programs, cniDir)
	}
	if err != nil {
		return err
	}
	c.logf("cluster is up after %s (cgroup v%d); kubeconfig: %s", time.Since(start).Round(100*time.Millisecond), host.CgroupVersion(), c.Layout.Kubeconfig())
	return nil
}

// usable says whether there is a cluster whose parts can be started again. A
// reboot leaves files that describe containers and networks of the past.
func (c *Cluster) usable() bool {
	if _, err := os.Stat(c.marker()); err != nil {
		return false
	}
	r, err := c.procs.Load("containerd")
	return err == nil && c.procs.SameBoot(r)
}

// marker is a file that exists once the keys of a cluster are complete.
func (c *Cluster) marker() string { return filepath.Join(c.Layout.State, "complete") }

// removeLeftovers clears what a cluster left that ended without `down`.
func (c *Cluster) removeLeftovers(ctx context.Context) error {
	if _, err := os.Stat(c.Layout.State); err == nil {
		c.logf("removing what is left of an earlier cluster")
		return c.remove(ctx)
	}
	return nil
}

func (c *Cluster) converge(ctx context.Context, p Programs, cniDir string) error {
	if err := c.prepare(ctx, cniDir); err != nil {
		return err
	}
	// Containers and the store have nothing to do with each other yet.
	var containers error
	var wg sync.WaitGroup
	wg.Go(func() {
		if containers = c.run(ctx, c.containerd(p), p); containers == nil {
			containers = c.loadOwnImages(ctx, p)
		}
	})
	store := c.run(ctx, c.etcd(p), p)
	if store == nil {
		store = c.run(ctx, c.apiserver(p), p)
	}
	if store == nil {
		store = c.startControllers(p)
	}
	wg.Wait()
	if err := errors.Join(containers, store); err != nil {
		return err
	}
	return c.startNode(ctx, p)
}

// startControllers does not wait: what they do is waited for later.
func (c *Cluster) startControllers(p Programs) error {
	for _, d := range []daemon{c.controllerManager(p), c.scheduler(p)} {
		if _, err := c.ensureDaemon(d, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startNode(ctx context.Context, p Programs) error {
	kubelet, err := c.ensureDaemon(c.kubelet(p), p)
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.applyAddons(ctx, client); err != nil {
		return err
	}
	err = c.await(ctx, "the node to register", daemonLimit, kubelet, func(ctx context.Context) error {
		return client.Get(ctx, nodePath, nil)
	})
	if err != nil {
		return err
	}
	// kube-proxy asks for the node once a second; now it finds it at once.
	if err := c.run(ctx, c.proxy(p), p); err != nil {
		return err
	}
	return c.awaitWorking(ctx, client, kubelet, p)
}

// prepare makes everything daemons read, and the machine's side of the network.
func (c *Cluster) prepare(ctx context.Context, cniDir string) error {
	for _, dir := range []string{c.Layout.State, c.Layout.Run, c.Layout.Config()} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	if _, err := os.Stat(c.marker()); err != nil {
		params := pki.Params{NodeName: NodeName, NodeIP: nodeIP, ServiceIP: serviceIP}
		if err := pki.Write(c.Layout.PKI(), params, time.Now()); err != nil {
			return err
		}
	}
	for name := range pki.Clients(NodeName) {
		file := c.configFile(name + ".kubeconfig")
		if name == adminUser {
			file = c.Layout.Kubeconfig()
		}
		if err := pki.WriteKubeconfig(file, c.Layout.PKI(), name, Server); err != nil {
			return err
		}
	}
	if err := config.Write(c.Layout.Config(), c.values(cniDir)); err != nil {
		return err
	}
	if err := c.writeResolvConf(); err != nil {
		return err
	}
	if err := c.network().Ensure(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(c.marker(), nil, 0o644); err != nil {
		return fmt.Errorf("mark cluster as complete: %w", err)
	}
	return nil
}

// WriteKubeconfig writes the administrator's kubeconfig to another place.
func (c *Cluster) WriteKubeconfig(file string) error {
	return pki.WriteKubeconfig(file, c.Layout.PKI(), adminUser, Server)
}

func (c *Cluster) writeResolvConf() error {
	var data []byte
	for _, server := range host.NameServers() {
		data = append(data, "nameserver "+server+"\n"...)
	}
	return files.WriteIfChanged(c.configFile("resolv.conf"), data, 0o644)
}
