package localrun

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/objects"
	"github.com/sharedos-dev/operator/toolsource"
)

// ErrService means that the server of a tool namespace is reached through a Service of
// a cluster, and no other address was given.
var ErrService = errors.New("its server is a Service of a cluster")

// errNoFolder cannot happen: what no folder serves is not on.
var errNoFolder = errors.New("no folder is served for it")

// connector serves planes from this process, and dials MCP servers as the manager does.
type connector struct {
	*toolsource.Connections
	planes map[v1alpha1.ResourcePlane]kernel.ResourceProvider
}

var (
	_ toolsource.Connector = connector{}
	_ toolsource.Broker    = connector{}
)

// Connect implements [toolsource.Connector].
func (c connector) Connect(_ context.Context, n *v1alpha1.ToolNamespace) (kernel.ResourceProvider, error) {
	if provider := c.planes[n.Spec.Source.Provider.Plane]; provider != nil {
		return provider, nil
	}
	return nil, errNoFolder
}

// readdress puts the addresses that were given in the place of those of the manifests.
func (o *Options) readdress(read []objects.Object) error {
	used := map[string]bool{}
	for _, object := range read {
		n, ok := object.(*v1alpha1.ToolNamespace)
		if !ok || n.Namespace != o.Namespace || n.Spec.Source.MCP == nil {
			continue
		}
		if at, given := o.Upstreams[n.Name]; given {
			if len(n.Spec.Source.MCP.HeadersFrom) > 0 && !confidential(at) {
				return fmt.Errorf("--upstream %s: its headersFrom need https, or http to this machine: credentials are not sent in clear text", n.Name)
			}
			n.Spec.Source.MCP.URL, n.Spec.Source.MCP.Service = at, nil
			used[n.Name] = true
		}
	}
	for name := range o.Upstreams {
		if !used[name] {
			return fmt.Errorf("--upstream %s: there is no tool namespace of an MCP server with this name in namespace %q of these manifests", name, o.Namespace)
		}
	}
	return nil
}

// confidential reports that what is sent to the address is read by nobody else.
func confidential(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || (err == nil && ip.IsLoopback())
}

// examine looks at every MCP server that the turn would use, and tells what its status
// would be. Whether the turn can run without it is the kernel's to say.
func (s *scene) examine(ctx context.Context, c *toolsource.Connections, p *progress) error {
	for _, known := range s.brokered {
		n := known.DeepCopy()
		look := &toolsource.Look{Conflict: toolsource.Conflict(n, s.snapshot.ToolNamespaces(n.Namespace))}
		found, err := c.Examine(ctx, n)
		look.Fault, look.Binding, look.At = err, found.Binding, metav1.NewTime(found.At)
		if err := toolsource.Judge(n, look); err != nil {
			return err
		}
		tell(n, p)
	}
	return nil
}

func tell(n *v1alpha1.ToolNamespace, p *progress) {
	connected := v1alpha1.FindCondition(n.Status.Conditions, v1alpha1.ToolNamespaceConnected)
	ready := v1alpha1.FindCondition(n.Status.Conditions, v1alpha1.ToolNamespaceReady)
	switch {
	case connected != nil && connected.Status != metav1.ConditionTrue:
		p.line("tools of %s: not ready, %s: %s", n.Name, connected.Reason, connected.Message)
		p.line("  no turn runs while its tools are not known; --without %s leaves them out", n.Name)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		p.line("tools of %s: not ready, %s: %s", n.Name, ready.Reason, ready.Message)
	case ready != nil:
		p.line("tools of %s: ready, %s: %s", n.Name, ready.Reason, ready.Message)
	}
	for i := range n.Status.Tools {
		t := &n.Status.Tools[i]
		switch {
		case t.Published && t.Message == "":
		case t.Name == "":
			p.line("  %s: %s, schemaDigest %s", t.Upstream, t.Reason, t.SchemaDigest)
		case t.SchemaDigest == "":
			p.line("  %s: %s: %s", t.Name, t.Reason, t.Message)
		default:
			p.line("  %s: %s, schemaDigest %s: %s", t.Name, t.Reason, t.SchemaDigest, t.Message)
		}
	}
}
