package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/host"
	"github.com/sharedos-dev/operator/test/localcluster/internal/pki"
	"github.com/sharedos-dev/operator/test/localcluster/internal/proc"
)

// daemon is one long-running program of the cluster.
type daemon struct {
	name string
	exe  string
	args []string
	// ports must be free before it starts.
	ports []string
	// ready asks once whether it does its work.
	ready func(context.Context) error
	// pulls says that it fetches images from the network.
	pulls bool
}

// stopOrder is the order in which daemons stop: first what starts containers,
// last what stores. containerd is last, after its containers were removed.
var stopOrder = []string{"kubelet", "kube-proxy", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd", "containerd"}

const etcdClientURL = "https://127.0.0.1:12379"

func (c *Cluster) etcd(p Programs) daemon {
	const peerURL, healthURL = "https://127.0.0.1:12380", "http://127.0.0.1:12381"
	key := c.keyFile
	return daemon{
		name: "etcd", exe: filepath.Join(p.Etcd, "etcd"),
		ports: []string{"127.0.0.1:12379", "127.0.0.1:12380", "127.0.0.1:12381"},
		args: []string{
			"--name=localcluster", "--data-dir=" + filepath.Join(c.Layout.State, "etcd"),
			// A test cluster need not survive a crash of the machine.
			"--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + etcdClientURL, "--advertise-client-urls=" + etcdClientURL,
			"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=localcluster=" + peerURL, "--listen-metrics-urls=" + healthURL,
			"--cert-file=" + key("etcd.crt"), "--key-file=" + key("etcd.key"),
			"--trusted-ca-file=" + key("etcd-ca.crt"), "--client-cert-auth",
			"--peer-cert-file=" + key("etcd.crt"), "--peer-key-file=" + key("etcd.key"),
			"--peer-trusted-ca-file=" + key("etcd-ca.crt"), "--peer-client-cert-auth",
		},
		ready: httpOK(healthURL + "/readyz"),
	}
}

func (c *Cluster) containerd(p Programs) daemon {
	return daemon{
		name: "containerd", exe: filepath.Join(p.Containerd, "containerd"),
		args:  []string{"--config", c.configFile("containerd.toml")},
		pulls: true,
		ready: func(ctx context.Context) error {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", c.Layout.ContainerdSocket())
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}
}

func (c *Cluster) apiserver(p Programs) daemon {
	key := c.keyFile
	return daemon{
		name: "kube-apiserver", exe: filepath.Join(p.Kubernetes, "kube-apiserver"),
		ports: []string{nodeIP + ":6443"},
		args: []string{
			"--bind-address=" + nodeIP, "--advertise-address=" + nodeIP, "--secure-port=6443",
			"--tls-cert-file=" + key("apiserver.crt"), "--tls-private-key-file=" + key("apiserver.key"),
			"--client-ca-file=" + key("ca.crt"),
			"--authentication-config=" + c.configFile("authentication.yaml"),
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--etcd-servers=" + etcdClientURL, "--etcd-cafile=" + key("etcd-ca.crt"),
			"--etcd-certfile=" + key("etcd-client.crt"), "--etcd-keyfile=" + key("etcd-client.key"),
			"--service-cluster-ip-range=" + serviceCIDR,
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + key("sa.pub"), "--service-account-signing-key-file=" + key("sa.key"),
			// By address: the node's name need not resolve on this machine.
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority=" + key("ca.crt"),
			"--kubelet-client-certificate=" + key("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + key("apiserver-kubelet-client.key"),
			"--requestheader-client-ca-file=" + key("front-proxy-ca.crt"),
			"--requestheader-allowed-names=" + pki.FrontProxyUser,
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + key("front-proxy-client.crt"), "--proxy-client-key-file=" + key("front-proxy-client.key"),
			"--profiling=false",
		},
		ready: func(ctx context.Context) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			return client.Get(ctx, "/readyz", nil)
		},
	}
}

func (c *Cluster) controllerManager(p Programs) daemon {
	key := c.keyFile
	kubeconfig := c.configFile("kube-controller-manager.kubeconfig")
	return daemon{
		name: "kube-controller-manager", exe: filepath.Join(p.Kubernetes, "kube-controller-manager"),
		ports: []string{"127.0.0.1:10257"},
		args: []string{
			"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false",
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--client-ca-file=" + key("ca.crt"), "--root-ca-file=" + key("ca.crt"),
			"--cluster-signing-cert-file=" + key("ca.crt"), "--cluster-signing-key-file=" + key("ca.key"),
			"--service-account-private-key-file=" + key("sa.key"), "--use-service-account-credentials=true",
			// The default limits make its start several seconds longer.
			"--kube-api-qps=500", "--kube-api-burst=1000",
			"--allocate-node-cidrs=false", "--cluster-cidr=" + podCIDR, "--service-cluster-ip-range=" + serviceCIDR,
		},
		ready: selfSignedOK("https://127.0.0.1:10257/healthz"),
	}
}

func (c *Cluster) scheduler(p Programs) daemon {
	kubeconfig := c.configFile("kube-scheduler.kubeconfig")
	return daemon{
		name: "kube-scheduler", exe: filepath.Join(p.Kubernetes, "kube-scheduler"),
		ports: []string{"127.0.0.1:10259"},
		args: []string{
			"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false",
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--client-ca-file=" + filepath.Join(c.Layout.PKI(), "ca.crt"),
		},
		ready: selfSignedOK("https://127.0.0.1:10259/healthz"),
	}
}

func (c *Cluster) kubelet(p Programs) daemon {
	return daemon{
		name: "kubelet", exe: filepath.Join(p.Kubernetes, "kubelet"),
		ports: []string{nodeIP + ":10250", "127.0.0.1:10248"},
		args: []string{
			"--config=" + c.configFile("kubelet.yaml"), "--kubeconfig=" + c.configFile("kubelet.kubeconfig"),
			"--hostname-override=" + NodeName, "--node-ip=" + nodeIP,
			"--root-dir=" + filepath.Join(c.Layout.State, "kubelet"), "--cert-dir=" + filepath.Join(c.Layout.State, "kubelet", "pki"),
		},
		ready: httpOK("http://127.0.0.1:10248/healthz"),
	}
}

func (c *Cluster) proxy(p Programs) daemon {
	return daemon{
		name: "kube-proxy", exe: filepath.Join(p.Kubernetes, "kube-proxy"),
		ports: []string{"127.0.0.1:10249", "127.0.0.1:10256"},
		args:  []string{"--config=" + c.configFile("kube-proxy.yaml")},
		ready: httpOK("http://127.0.0.1:10256/healthz"),
	}
}

// ensureDaemon starts a daemon unless it runs already from the same program.
func (c *Cluster) ensureDaemon(d daemon, p Programs) (proc.Record, error) {
	if r, running := c.procs.Running(d.name); running {
		if r.Exe == d.exe {
			return r, nil
		}
		c.logf("restarting %s: its program was built anew", d.name)
		if err := c.procs.Stop(d.name, stopGrace); err != nil {
			return proc.Record{}, err
		}
	}
	for _, port := range d.ports {
		if err := host.PortFree(port); err != nil {
			return proc.Record{}, fmt.Errorf("start %s: %w (see `ss -ltnp`)", d.name, err)
		}
	}
	// The shim is found beside containerd, through the search path.
	path := p.Containerd + ":" + host.Path()
	return c.procs.Start(proc.Spec{
		Name: d.name, Exe: d.exe, Args: d.args, LogFile: c.logFile(d.name),
		Env: daemonEnv(path, d.pulls, os.Environ()),
	})
}

// run ensures that a daemon runs and does its work.
func (c *Cluster) run(ctx context.Context, d daemon, p Programs) error {
	r, err := c.ensureDaemon(d, p)
	if err != nil {
		return err
	}
	return c.await(ctx, d.name+" to be ready", daemonLimit, r, d.ready)
}

func httpOK(url string) func(context.Context) error {
	return statusOK(url, &http.Transport{Proxy: nil})
}

// selfSignedOK asks a server of this machine that made its own certificate.
// Only "it answers" is learnt from it, and nothing secret is sent.
func selfSignedOK(url string) func(context.Context) error {
	return statusOK(url, &http.Transport{
		Proxy:           nil,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // loopback, and only the status is used
	})
}

func statusOK(url string, transport *http.Transport) func(context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: transport}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}
