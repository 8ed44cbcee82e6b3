package v1alpha1

import (
	"encoding/json"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestAMalformedTemplateIsItsOwnFault: it must not keep a list from being read.
func TestAMalformedTemplateIsItsOwnFault(t *testing.T) {
	const list = `{"apiVersion":"sharedos.dev/v1alpha1","kind":"HarnessList","items":[
		{"metadata":{"name":"bad"},"spec":{"type":"codex","output":"json","template":{"metadata":{"annotations":{"a":true}}}}},
		{"metadata":{"name":"worse"},"spec":{"type":"codex","template":"text"}},
		{"metadata":{"name":"good"},"spec":{"type":"custom","defaults":{"maxToolCalls":3},"template":{"spec":{"containers":[{"name":"harness","command":["/a"]}]}}}}]}`
	for name, decode := range map[string]func([]byte, any) error{"encoding/json": json.Unmarshal, "the API machinery": utiljson.Unmarshal} {
		t.Run(name, func(t *testing.T) {
			var got HarnessList
			if err := decode([]byte(list), &got); err != nil {
				t.Fatalf("the list cannot be read: %v", err)
			}
			for i := range 2 {
				if h := got.Items[i]; h.Spec.TemplateFault() == "" || h.Spec.Type != HarnessCodex {
					t.Errorf("%s: fault %q, type %q", h.Name, h.Spec.TemplateFault(), h.Spec.Type)
				}
			}
			if got.Items[0].Spec.Output != OutputJSON {
				t.Errorf("the rest of a faulty spec is lost: %+v", got.Items[0].Spec)
			}
			good := got.Items[2].Spec
			if good.TemplateFault() != "" || len(good.Template.Spec.Containers) != 1 || good.Defaults == nil || *good.Defaults.MaxToolCalls != 3 {
				t.Errorf("the good one: %+v", good)
			}
			raw, err := json.Marshal(good)
			if err != nil {
				t.Fatal(err)
			}
			var again HarnessSpec
			if err := decode(raw, &again); err != nil || again.Template.Spec.Containers[0].Command[0] != "/a" {
				t.Errorf("a round trip loses the template: %v %+v", err, again)
			}
		})
	}
}
