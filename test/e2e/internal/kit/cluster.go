package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Where a cluster comes from; the values of the environment variable CLUSTER.
const (
	Local   = "local"
	Current = "current"
)

// Errors of [Connect].
var (
	ErrNoLocalCluster = errors.New("the local cluster needs Linux and root; run as root, or use your own cluster with CLUSTER=current")
	ErrNoRepository   = errors.New("the repository's folder was not found; run this inside a checkout")
)

// Cluster is a Kubernetes to test on.
type Cluster struct {
	// Kind is Local or Current.
	Kind string
	// Kubeconfig is its file; empty for kubectl's own choice.
	Kubeconfig string
	// Kubectl is the program.
	Kubectl string
	Config  *rest.Config
	Client  client.WithWatch
	// Root is the repository.
	Root string
}

// Connect starts the local cluster, or finds the current one. What the local
// cluster says about its progress goes to out.
func Connect(ctx context.Context, kind string, out io.Writer) (*Cluster, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Kind: kind, Root: root, Kubectl: "kubectl"}
	switch kind {
	case "", Local:
		c.Kind = Local
		if runtime.GOOS != "linux" || os.Getuid() != 0 {
			return nil, ErrNoLocalCluster
		}
		if err := c.startLocal(ctx, out); err != nil {
			return nil, err
		}
	case Current:
	default:
		return nil, fmt.Errorf("CLUSTER=%q: must be %s or %s", kind, Local, Current)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	if c.Config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig(); err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	c.Config.QPS, c.Config.Burst = -1, -1
	if c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: Scheme()}); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return c, nil
}

// Scheme knows the kinds of the tests.
func Scheme() *apiruntime.Scheme {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name: a fault of the build
		}
	}
	return scheme
}

// startLocal runs the local cluster's own tool.
func (c *Cluster) startLocal(ctx context.Context, out io.Writer) error {
	if err := c.localcluster(ctx, out, out, "up"); err != nil {
		return err
	}
	var env strings.Builder
	if err := c.localcluster(ctx, &env, out, "env"); err != nil {
		return err
	}
	for line := range strings.Lines(env.String()) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok {
			continue
		}
		value = strings.Trim(value, `'"`)
		switch name {
		case "KUBECONFIG":
			c.Kubeconfig = value
		case "KUBEBUILDER_ASSETS":
			c.Kubectl = filepath.Join(value, "kubectl")
		}
	}
	if c.Kubeconfig == "" {
		return errors.New("the local cluster named no kubeconfig")
	}
	return nil
}

// Load brings image archives into the local cluster.
func (c *Cluster) Load(ctx context.Context, out io.Writer, archives ...string) error {
	return c.localcluster(ctx, out, out, append([]string{"load"}, archives...)...)
}

func (c *Cluster) localcluster(ctx context.Context, stdout, stderr io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"-C", filepath.Join(c.Root, "test", "localcluster"), "run", "."}, args...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("localcluster %s: %w", args[0], err)
	}
	return nil
}

// Run runs kubectl and returns what it printed.
func (c *Cluster) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Kubectl, args...)
	cmd.Env = c.Env()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		return string(raw), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(raw), nil
}

// Env is the environment for programs that talk to the cluster.
func (c *Cluster) Env() []string {
	env := os.Environ()
	if c.Kubeconfig != "" {
		env = append(env, "KUBECONFIG="+c.Kubeconfig)
	}
	return env
}

// repository finds the folder of the checkout.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "charts", "sharedos", "Chart.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNoRepository
		}
		dir = parent
	}
}
