// Package cluster starts, repairs, inspects and removes the cluster.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sharedos-dev/operator/test/localcluster/internal/config"
	"github.com/sharedos-dev/operator/test/localcluster/internal/host"
	"github.com/sharedos-dev/operator/test/localcluster/internal/kube"
	"github.com/sharedos-dev/operator/test/localcluster/internal/layout"
	"github.com/sharedos-dev/operator/test/localcluster/internal/proc"
)

// Names and addresses of the cluster. There is one cluster per machine, so
// they are fixed, and they do not depend on the machine's own network.
const (
	NodeName    = "localcluster"
	bridge      = "sharedos-lc0"
	nodeIP      = "10.244.0.1"
	podCIDR     = "10.244.0.0/24"
	podPrefix   = "/24"
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
	dnsIP       = "10.96.0.10"

	// Server is the URL of the API server, for this machine and its pods.
	Server = "https://" + nodeIP + ":6443"

	// PodAndServiceCIDRs are the ranges no proxy can reach.
	PodAndServiceCIDRs = podCIDR + "," + serviceCIDR

	// ContainerdNamespace is where the kubelet's containers and images are.
	ContainerdNamespace = "k8s.io"

	adminUser = "admin"
)

// Cluster is the one cluster of this machine, running or not.
type Cluster struct {
	Layout layout.Layout
	// Progress receives lines for a person to read.
	Progress io.Writer

	procs proc.Store
}

// New returns the cluster that lives in the layout's folders.
func New(l layout.Layout, progress io.Writer) *Cluster {
	return &Cluster{Layout: l, Progress: progress, procs: proc.Store{Dir: l.Pids()}}
}

func (c *Cluster) logf(format string, args ...any) {
	fmt.Fprintf(c.Progress, format+"\n", args...)
}

func (c *Cluster) lockFile() string { return c.Layout.State + ".lock" }

func (c *Cluster) logFile(daemon string) string {
	return filepath.Join(c.Layout.Logs(), daemon+".log")
}

func (c *Cluster) configFile(name string) string {
	return filepath.Join(c.Layout.Config(), name)
}

func (c *Cluster) keyFile(name string) string {
	return filepath.Join(c.Layout.PKI(), name)
}

func (c *Cluster) network() host.Network {
	return host.Network{Bridge: bridge, Gateway: nodeIP + podPrefix, Rules: c.configFile("nftables.conf")}
}

func (c *Cluster) client() (*kube.Client, error) {
	return kube.NewClient(Server, c.Layout.PKI(), adminUser)
}

func (c *Cluster) values(cniDir string) config.Values {
	return config.Values{
		NodeName: NodeName, NodeIP: nodeIP, Bridge: bridge,
		PodCIDR: podCIDR, ServiceCIDR: serviceCIDR, DNSIP: dnsIP,
		StateDir: c.Layout.State, RunDir: c.Layout.Run, PKIDir: c.Layout.PKI(),
		ContainerdSocket: c.Layout.ContainerdSocket(), RuncRoot: c.Layout.RuncRoot(),
		CNIBinDir: cniDir, CNIConfDir: c.configFile("cni"),
		PauseImage:  pauseImage,
		RestrictOOM: !host.CanLowerOOMScore(),
		ResolvConf:  c.configFile("resolv.conf"),
	}
}

// errNotRoot is returned where the machine itself has to be changed.
var errNotRoot = errors.New("this needs root: it starts a container runtime and changes the network of this machine (run it with sudo -E)")

func requireRoot() error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	return nil
}

// daemonEnv is the environment of a daemon: nothing of the caller's but, for
// the one that pulls images, the way to the network.
func daemonEnv(path string, withProxy bool, environ []string) []string {
	env := []string{"PATH=" + path, "HOME=/"}
	if !withProxy {
		return env
	}
	names := []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"}
	for _, entry := range environ {
		for i := range entry {
			if entry[i] == '=' && slices.Contains(names, entry[:i]) {
				env = append(env, entry)
			}
		}
	}
	return env
}
