package toolsource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/toolsource"
)

var errDown = errors.New("the source is down")

// connector fails for one namespace.
type connector struct{ down string }

func (c connector) Connect(_ context.Context, n *v1alpha1.ToolNamespace) (kernel.ResourceProvider, error) {
	if n.Name == c.down {
		return nil, errDown
	}
	return nil, nil //nolint:nilnil // nothing is called
}

func namespace(name string, source v1alpha1.ToolSource) *v1alpha1.ToolNamespace {
	return &v1alpha1.ToolNamespace{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Source: source},
	}
}

func plane(p v1alpha1.ResourcePlane) v1alpha1.ToolSource {
	return v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{Plane: p}}
}

func tools(t *testing.T, down string, enabled []string, all ...*v1alpha1.ToolNamespace) ([]kernel.Tool, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, n := range all {
		builder = builder.WithObjects(n)
	}
	return toolsource.Provider{Reader: cluster.Reader(builder.Build()), Connector: connector{down}}.Tools(t.Context(), contract.AccessContext{
		NamespaceID: "ns", EnabledToolNamespaces: enabled,
	})
}

func TestToolsOfTheEnabledAndTheRest(t *testing.T) {
	files, repo := namespace("docs", plane(v1alpha1.PlaneFiles)), namespace("code", plane(v1alpha1.PlaneRepo))
	got, err := tools(t, "", []string{"docs"}, files, repo, namespace("ask", v1alpha1.ToolSource{Builtin: v1alpha1.BuiltinSharedOS}))
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]int{}
	for i := range got {
		in[got[i].Definition.Namespace]++
	}
	if len(in) != 2 || in["docs"] != 12 || in["code"] != 5 {
		t.Errorf("tools by namespace: %v; want 12 of docs, and 5 of code that the kernel knows to be off", in)
	}
}

func TestOneSourceDownFailsAll(t *testing.T) {
	files, repo := namespace("docs", plane(v1alpha1.PlaneFiles)), namespace("code", plane(v1alpha1.PlaneRepo))
	if got, err := tools(t, "code", []string{"code", "docs"}, files, repo); !errors.Is(err, errDown) || got != nil {
		t.Errorf("%d tools, %v; want none and the fault", len(got), err)
	}
	if _, err := tools(t, "code", []string{"docs"}, files, repo); err != nil {
		t.Errorf("a source that is off cannot fail: %v", err)
	}
	if _, err := tools(t, "", []string{"up"}, namespace("up", v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{}})); !errors.Is(err, toolsource.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func TestWhatIsOffNeverTakesAName(t *testing.T) {
	on, off := namespace("zz-on", plane(v1alpha1.PlaneFiles)), namespace("aa-off", plane(v1alpha1.PlaneFiles))
	got, err := tools(t, "", []string{"zz-on"}, on, off)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got, func(k kernel.Tool) bool { return k.Definition.Namespace != "zz-on" }) || len(got) != 12 {
		t.Errorf("%d tools, and not all of the one that is on", len(got))
	}
}

func TestBaseURL(t *testing.T) {
	service := func(change func(*v1alpha1.ServiceReference)) *v1alpha1.Endpoint {
		s := &v1alpha1.ServiceReference{Name: "files", Port: 8443}
		if change != nil {
			change(s)
		}
		return &v1alpha1.Endpoint{Service: s}
	}
	for want, e := range map[string]*v1alpha1.Endpoint{
		"https://files.ns.svc:8443":  service(nil),
		"https://files.sys.svc:8443": service(func(s *v1alpha1.ServiceReference) { s.Namespace = "sys" }),
		"http://files.ns.svc:8443/x": service(func(s *v1alpha1.ServiceReference) { s.Scheme, s.Path = v1alpha1.SchemeHTTP, "/x" }),
		"https://elsewhere.example":  {URL: "https://elsewhere.example"},
	} {
		if got, err := toolsource.BaseURL(e, "ns"); got != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	for _, e := range []*v1alpha1.Endpoint{service(func(s *v1alpha1.ServiceReference) { s.Scheme = v1alpha1.SchemeHTTP }), {URL: "http://elsewhere.example"}} {
		e.HeadersFrom = []v1alpha1.HeaderFrom{{Name: "X-Key"}}
		if got, err := toolsource.BaseURL(e, "ns"); !errors.Is(err, toolsource.ErrClearText) {
			t.Errorf("credentials would go to %q: %v", got, err)
		}
	}
	if _, err := toolsource.BaseURL(&v1alpha1.Endpoint{}, "ns"); err == nil {
		t.Error("an endpoint without an address was accepted")
	}
}
