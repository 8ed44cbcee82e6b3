package chart

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestSchemaRefuses(t *testing.T) {
	for _, test := range []struct{ name, values, at string }{
		{"unknown key", "replicas: 2", "replicas"},
		{"unknown nested key", "manager: {replica: 2}", "replica"},
		{"wrong type", "manager: {replicas: two}", "replicas"},
		{"negative", "manager: {replicas: -1}", "replicas"},
		{"pull policy", "images: {pullPolicy: Sometimes}", "pullPolicy"},
		{"prefix with a slash", "images: {prefix: registry.example/}", "prefix"},
		{"timeout", "webhook: {timeoutSeconds: 31}", "timeoutSeconds"},
		{"namespace", "webhook: {excludedNamespaces: [Not_A_Namespace]}", "excludedNamespaces"},
		{"seed without a world", "filesProvider: {seed: {status.md: x}}", "seed"},
		{"seed that leaves its folder", "filesProvider: {seed: {team/../other/x: x}}", "seed"},
		{"absolute seed", "filesProvider: {seed: {/team/x: x}}", "seed"},
		{"seed of a folder", "filesProvider: {seed: {team/x/: x}}", "seed"},
		{"name too long", "fullnameOverride: " + strings.Repeat("a", 41), "fullnameOverride"},
		{"budget of nothing", "podDisruptionBudget: {maxUnavailable: 0}", "maxUnavailable"},
		{"egress to a name", "egress: {allow: [localhost]}", "egress"},
		{"volume size", "audit: {persistence: {size: big}}", "size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := tryRender(t, release, test.values)
			if err == nil || !strings.Contains(err.Error(), test.at) {
				t.Errorf("rendering with %s = %v, want an error that names %s", test.values, err, test.at)
			}
		})
	}
}

func TestSchemaAccepts(t *testing.T) {
	for _, values := range []string{
		"filesProvider: {seed: {team-atlas/a: x, team-atlas/Work/..b/c..md: x}}",
		"podDisruptionBudget: {maxUnavailable: 50%}",
		"global: {anything: true}",
	} {
		if _, err := tryRender(t, release, values); err != nil {
			t.Errorf("rendering with %s: %v", values, err)
		}
	}
}

// Every value has a schema and every schema a default, and every value is explained.
func TestValuesAndSchemaAgree(t *testing.T) {
	content, err := os.ReadFile(chartPath + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(chartPath + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var fromSchema, fromValues []string
	schemaPaths(schema, "", &fromSchema)
	valuePaths(values, schema, "", &fromValues)
	fromSchema = slices.DeleteFunc(fromSchema, func(path string) bool { return path == "global" })
	slices.Sort(fromSchema)
	slices.Sort(fromValues)
	if diff := cmp.Diff(fromSchema, fromValues); diff != "" {
		t.Errorf("keys (-schema +values):\n%s", diff)
	}
}

// schemaPaths collects the dotted paths of all leaves.
func schemaPaths(schema map[string]any, at string, paths *[]string) {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 || strings.HasSuffix(at, ".resources") {
		*paths = append(*paths, at)
		return
	}
	for name, property := range properties {
		child, _ := property.(map[string]any)
		schemaPaths(child, strings.TrimPrefix(at+"."+name, "."), paths)
	}
}

// valuePaths collects the same from values, going only as deep as the schema.
func valuePaths(value any, schema map[string]any, at string, paths *[]string) {
	properties, _ := schema["properties"].(map[string]any)
	object, ok := value.(map[string]any)
	if !ok || len(properties) == 0 || strings.HasSuffix(at, ".resources") {
		*paths = append(*paths, at)
		return
	}
	for name, child := range object {
		childSchema, _ := properties[name].(map[string]any)
		valuePaths(child, childSchema, strings.TrimPrefix(at+"."+name, "."), paths)
	}
}
