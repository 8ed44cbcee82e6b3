package httpapi

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/narrowing"
)

// enabledOf are the enabled namespaces of a catalogue.
func enabledOf(c contract.ToolNamespaceCatalog) []string {
	out := []string{}
	for _, n := range c.Namespaces {
		if n.Enabled {
			out = append(out, n.Namespace)
		}
	}
	return out
}

func (o *operator) narrow(t *testing.T, token, body string) contract.ToolNamespaceCatalog {
	t.Helper()
	a, err := o.call(t.Context(), http.MethodPut, "/v1/tools/namespaces", token, body)
	must(t, err)
	return decode[contract.ToolNamespaceCatalog](t, a)
}

func (w *world) disabled(name string) []v1alpha1.LabelName {
	w.t.Helper()
	p := &v1alpha1.Principal{}
	must(w.t, server.client.Get(w.t.Context(), key(w.namespace, name), p))
	out := slices.Clone(p.Spec.DisabledToolNamespaces)
	slices.Sort(out)
	return out
}

func TestNarrowingTakesEffectAtOnce(t *testing.T) {
	o, w := start(t), newWorld(t, "narrow")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	w.grant("bot", "files", []v1alpha1.PathSegment{"Work"}, "list")
	for _, step := range []struct {
		name, body string
		enabled    []string
		stored     []v1alpha1.LabelName
	}{
		{"off", `{"disable":["files"]}`, []string{"messages", "repo"}, []v1alpha1.LabelName{"files"}},
		{"off again", `{"disable":["files"]}`, []string{"messages", "repo"}, []v1alpha1.LabelName{"files"}},
		{"one on, one off", `{"enable":["files"],"disable":["messages"]}`, []string{"files", "repo"}, []v1alpha1.LabelName{"messages"}},
		{"what does not exist", `{"enable":["none"],"disable":["void"]}`, []string{"files", "repo"}, []v1alpha1.LabelName{"messages"}},
		{"all on", `{"enable":["messages"]}`, []string{"files", "messages", "repo"}, nil},
	} {
		got := o.narrow(t, mine, step.body)
		if !slices.Equal(enabledOf(got), step.enabled) {
			t.Errorf("%s: enabled %v, want %v", step.name, enabledOf(got), step.enabled)
		}
		if stored := w.disabled("bot"); !slices.Equal(stored, step.stored) {
			t.Errorf("%s: stored %v, want %v", step.name, stored, step.stored)
		}
		// What the same caller asks next is answered from what was stored.
		if after := decode[contract.ToolNamespaceCatalog](t, o.get(t, "/v1/tools/namespaces", mine)); !slices.Equal(enabledOf(after), step.enabled) {
			t.Errorf("%s: afterwards %v", step.name, enabledOf(after))
		}
	}
}

func TestNarrowingKeepsWhatOthersWrote(t *testing.T) {
	o, w := start(t), newWorld(t, "others")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	// Somebody else disables one, and Git switches another off.
	p := &v1alpha1.Principal{}
	must(t, server.client.Get(t.Context(), key(w.namespace, "bot"), p))
	before := p.DeepCopy()
	p.Spec.DisabledToolNamespaces = []v1alpha1.LabelName{"repo"}
	must(t, server.client.Patch(t.Context(), p, client.MergeFrom(before), client.FieldOwner("git")))
	files := &v1alpha1.ToolNamespace{}
	must(t, server.client.Get(t.Context(), key(w.namespace, "files"), files))
	files.Spec.Enabled = false
	must(t, server.client.Update(t.Context(), files))

	if got := enabledOf(o.narrow(t, mine, `{"enable":["repo","files"],"disable":["messages"]}`)); len(got) != 0 {
		t.Errorf("enabled %v: the API can only take back its own narrowing, within what Git enabled", got)
	}
	if stored := w.disabled("bot"); !slices.Equal(stored, []v1alpha1.LabelName{"messages", "repo"}) {
		t.Errorf("stored %v", stored)
	}
	must(t, server.client.Get(t.Context(), key(w.namespace, "bot"), p))
	if !slices.ContainsFunc(p.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == narrowing.FieldOwner }) {
		t.Error("the API's entries have no field manager of their own")
	}
	if p.Spec.Harness != "h" || len(p.Spec.Identities) != 1 {
		t.Errorf("the rest of the Principal changed: %+v", p.Spec)
	}
}

// TestTwoCallersLoseNothing: two callers change different namespaces at once, many
// times, and each finds its own change in the end.
func TestTwoCallersLoseNothing(t *testing.T) {
	o, w := start(t), newWorld(t, "race")
	mine := []string{w.token("bot", v1alpha1.AudienceAPI), w.token("bot", v1alpha1.AudienceAPI)}
	o.known(t, mine[0])
	o.known(t, mine[1])
	names := []string{"files", "repo"}
	for round := range 10 {
		verb, want := "disable", []v1alpha1.LabelName{"files", "repo"}
		if round%2 == 1 {
			verb, want = "enable", nil
		}
		var both sync.WaitGroup
		for i, name := range names {
			both.Go(func() {
				a, err := o.call(t.Context(), http.MethodPut, "/v1/tools/namespaces", mine[i], `{"`+verb+`":["`+name+`"]}`)
				if err != nil || a.status != http.StatusOK {
					t.Errorf("%s %s: %d %s %v", verb, name, a.status, a.body, err)
					return
				}
				got, err := contract.Unmarshal[contract.ToolNamespaceCatalog]([]byte(a.body))
				if err != nil || slices.Contains(enabledOf(got), name) != (verb == "enable") {
					t.Errorf("%s %s: answered %v %v", verb, name, enabledOf(got), err)
				}
			})
		}
		both.Wait()
		if stored := w.disabled("bot"); !slices.Equal(stored, want) {
			t.Fatalf("round %d, %s: stored %v, want %v", round, verb, stored, want)
		}
	}
}
