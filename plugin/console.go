package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
)

// consolePort is the name of the console's port in the manager's pod. A pod without
// it serves no console.
const consolePort = "console"

// errNoConsole means that the installation serves no console.
var errNoConsole = errors.New("the manager serves no console; set console.enabled in the chart's values")

type consoleCmd struct {
	env    *env
	system string
	port   int
	open   bool
	// forward forwards a port until ctx ends, and says on ready which local one it got.
	forward func(ctx context.Context, config *rest.Config, pod *corev1.Pod, local, remote int, ready func(local int)) error
	// browse shows an address to the person.
	browse func(ctx context.Context, url string) error
}

func newConsole(e *env) *cobra.Command {
	return newConsoleWith(&consoleCmd{env: e, forward: forwardPort, browse: browse})
}

func newConsoleWith(c *consoleCmd) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Look at the read-only web console through a port-forward",
		Long: `Forwards a port of this machine's loopback address to a manager's pod, prints the address
of the web console there, and goes on until it is interrupted.

You need create on pods/portforward in the namespace of the installation. The console
shows everything in every world.`,
		Example: examples("kubectl sharedos console --open\nkubectl sharedos console --port 9000 --system-namespace sharedos-system"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.system, "system-namespace", "sharedos-system", "namespace that SharedOS is installed in")
	cmd.Flags().IntVar(&c.port, "port", 8090, "port of this machine; 0 takes any that is free")
	cmd.Flags().BoolVar(&c.open, "open", false, "open the browser")
	return cmd
}

func (c *consoleCmd) run(ctx context.Context) error {
	if c.port < 0 || c.port > 65535 {
		return usage("--port: %d is not a port", c.port)
	}
	config, err := c.env.config()
	if err != nil {
		return err
	}
	set, err := c.env.clientset()
	if err != nil {
		return err
	}
	pod, remote, err := consolePod(ctx, set, c.system)
	if err != nil {
		return err
	}
	err = c.forward(ctx, config, pod, c.port, remote, func(local int) {
		url := "http://localhost:" + strconv.Itoa(local) + "/"
		fmt.Fprintf(c.env.streams.Out, "The console is at %s until you press Ctrl-C.\n", url)
		if c.open {
			if err := c.browse(ctx, url); err != nil {
				fmt.Fprintf(c.env.streams.ErrOut, "The browser could not be opened: %v\n", err)
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("forward a port to pod %s: %w", pod.Name, err)
	}
	return nil
}

// consolePod is a manager's pod that is ready, and the port of its console.
func consolePod(ctx context.Context, set kubernetes.Interface, namespace string) (*corev1.Pod, int, error) {
	pods, err := set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelComponent + "=manager"})
	if err != nil {
		return nil, 0, fmt.Errorf("list the manager's pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, 0, fmt.Errorf("there is no manager in namespace %q; --system-namespace says where it is installed", namespace)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	found := false
	for i := range pods.Items {
		pod := &pods.Items[i]
		port := portOf(pod, consolePort)
		found = found || port != 0
		if port != 0 && isReady(pod) {
			return pod, port, nil
		}
	}
	if !found {
		return nil, 0, errNoConsole
	}
	return nil, 0, fmt.Errorf("no pod of the manager in namespace %q is ready; kubectl sharedos doctor says why", namespace)
}

func portOf(pod *corev1.Pod, name string) int {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name {
				return int(port.ContainerPort)
			}
		}
	}
	return 0
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// forwardPort forwards through the API server, as kubectl port-forward does.
func forwardPort(ctx context.Context, config *rest.Config, pod *corev1.Pod, local, remote int, ready func(int)) error {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	target := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return err
	}
	listening := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(
		ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("%d:%d", local, remote)}, listening, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return err
	case <-listening:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	ready(int(ports[0].Local))
	return <-ended
}

// browse opens the person's browser.
func browse(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	return exec.CommandContext(context.WithoutCancel(ctx), name, args...).Start() //nolint:gosec // a constant program, and an address of ours
}
