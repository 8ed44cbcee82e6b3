package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/snapshot"
)

// env is what commands have in common: the streams, the cluster as the caller reaches
// it, and the clock.
type env struct {
	streams genericiooptions.IOStreams
	flags   *genericclioptions.ConfigFlags
	clock   func() time.Time
}

func newEnv(streams genericiooptions.IOStreams) *env {
	flags := genericclioptions.NewConfigFlags(true)
	// --as names a Principal here; kubectl's is called --as-user.
	flags.Impersonate, flags.ImpersonateGroup, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil
	return &env{streams: streams, flags: flags, clock: time.Now}
}

// addFlags adds kubectl's own flags.
func (e *env) addFlags(cmd *cobra.Command) {
	e.flags.AddFlags(cmd.PersistentFlags())
	e.flags.Impersonate = new("")
	cmd.PersistentFlags().StringVar(e.flags.Impersonate, "as-user", "", "Kubernetes user to act as, like kubectl's --as")
	complete(cmd, "namespace", e.completeNamespaces)
	complete(cmd, "context", e.completeContexts)
}

// namespace is the one that was asked for, or the context's.
func (e *env) namespace() (string, error) {
	namespace, _, err := e.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return namespace, nil
}

// offlineNamespace is the one that was asked for; no kubeconfig is read for it.
func (e *env) offlineNamespace() string {
	if *e.flags.Namespace != "" {
		return *e.flags.Namespace
	}
	return "default"
}

func (e *env) config() (*rest.Config, error) {
	config, err := e.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "kubectl-sharedos/" + version()
	return config, nil
}

// client reaches the cluster as the caller.
func (e *env) client() (client.WithWatch, error) {
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return c, nil
}

func (e *env) clientset() (kubernetes.Interface, error) {
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return set, nil
}

// world is the namespace with a client of it.
func (e *env) world() (client.WithWatch, string, error) {
	namespace, err := e.namespace()
	if err != nil {
		return nil, "", err
	}
	c, err := e.client()
	return c, namespace, err
}

// inspector lists the namespace once, with the caller's rights, and asks the kernel
// about that.
func (e *env) inspector(ctx context.Context) (*snapshot.Inspector, string, error) {
	c, namespace, err := e.world()
	if err != nil {
		return nil, "", err
	}
	taken, err := snapshot.Take(ctx, cluster.Reader(c), namespace)
	if err != nil {
		return nil, "", err
	}
	i, err := snapshot.NewInspector(taken)
	return i, namespace, err
}
