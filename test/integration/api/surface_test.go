package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// TestDiscovery checks what kubectl learns about the kinds.
func TestDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatalf("discover %s: %v", v1alpha1.GroupVersion, err)
	}
	got := map[string][]string{}
	for _, resource := range list.APIResources {
		if !resource.Namespaced {
			t.Errorf("%s is not namespaced", resource.Name)
		}
		got[resource.Name] = append(append([]string{}, resource.ShortNames...), resource.Categories...)
	}
	want := map[string][]string{
		"principals": {"prn", "sharedos"}, "principals/status": {},
		"grants": {"gnt", "sharedos"}, "grants/status": {},
		"toolnamespaces": {"tns", "sharedos"}, "toolnamespaces/status": {},
		"harnesses": {"hrn", "sharedos"}, "harnesses/status": {},
		"turns": {"trn", "sharedos"}, "turns/status": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources with their short names and categories (-want +got):\n%s", diff)
	}
}

// TestColumns checks what kubectl get prints, wide columns marked with *.
func TestColumns(t *testing.T) {
	want := map[string][][2]any{
		"principals": {
			{"Name", "alice-assistant"}, {"Kind", "agent"}, {"Authority", nil}, {"Owner", nil}, {"*Harness", nil},
			{"Ready", "True"}, {"*Reason", "Resolved"},
		},
		"grants": {
			{"Name", "read-atlas"}, {"Issuer", "alice"}, {"Subject", "alice-assistant"}, {"Actions", `["read"]`},
			{"Ready", "False"}, {"*Reason", "Revoked"}, {"Uses", 2.0}, {"Expires", nil},
		},
		"toolnamespaces": {
			{"Name", "notes"}, {"Enabled", nil}, {"Ready", "True"}, {"Connected", "True"}, {"Tools", 1.0},
			{"*Reason", "PartlyPublished"}, {"*Discovered", anything},
		},
		"harnesses": {
			{"Name", "example"}, {"Type", "custom"}, {"Output", nil}, {"*Policy", nil}, {"Ready", "True"}, {"*Reason", "Resolved"},
		},
		"turns": {
			{"Name", "status-report"}, {"Principal", "alice-assistant"}, {"Harness", nil}, {"State", "Escalated"},
			{"Code", "no_matching_grant"}, {"Tools", 4.0}, {"Calls", 3.0}, {"*Denied", 1.0}, {"*Pod", "status-report"},
		},
	}
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	for _, kind := range kinds() {
		withStatus(ctx, t, kind.base, kind.status, namespace)
	}
	for resource, columns := range want {
		t.Run(resource, func(t *testing.T) {
			columns = append(columns, [2]any{"Age", anything})
			if diff := cmp.Diff(columns, row(t, namespace, resource)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// anything stands for a cell that depends on the time.
const anything = "…"

// row returns the columns and the one row of a list as the server prints it.
func row(t *testing.T, namespace, resource string) [][2]any {
	t.Helper()
	config := rest.CopyConfig(server.config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.GroupVersion
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.Get().Namespace(namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("list %s as a table: %v", resource, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, want 1", len(table.Rows))
	}
	cells := make([][2]any, 0, len(table.ColumnDefinitions))
	for i, column := range table.ColumnDefinitions {
		name, cell := column.Name, table.Rows[0].Cells[i]
		if column.Priority > 0 {
			name = "*" + name
		}
		if _, ok := cell.(string); ok && (column.Type == "date" || column.Name == "Age") {
			cell = anything
		}
		cells = append(cells, [2]any{name, cell})
	}
	return cells
}
