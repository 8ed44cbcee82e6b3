package api

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// refusals has, for each kind, the refusals that the tests of this package see.
func refusals(t *testing.T) map[string][]string {
	t.Helper()
	seen := map[string][]string{}
	add := func(kind string, cases ...ruleCase) {
		for _, test := range cases {
			if test.want != "" {
				seen[kind] = append(seen[kind], test.want)
			}
		}
	}
	addUpdates := func(kind string, cases ...updateCase) {
		for _, test := range cases {
			add(kind, ruleCase{want: test.want})
		}
	}
	add("Principal", principalCases...)
	addUpdates("Principal", principalUpdates...)
	add("Grant", grantCases...)
	addUpdates("Grant", grantUpdates...)
	add("Grant", ruleCase{want: "must not be . or .. and must not begin"}) // TestPathSegments
	add("ToolNamespace", slices.Concat(sourceCases(), endpointCases(), toolCases(t), selectorCases, providerCases())...)
	add("Harness", harnessCases...)
	add("Turn", slices.Concat(turnCases, turnStatusCases)...)
	addUpdates("Turn", turnCancelCases...)
	add("Turn", ruleCase{want: immutable}) // TestTurnIsImmutable
	return seen
}

// TestEveryRuleIsTested makes sure that each CEL rule of each kind has a test that
// is refused by it.
func TestEveryRuleIsTested(t *testing.T) {
	paths, err := filepath.Glob(crdPath + "/sharedos.dev_*.yaml")
	if err != nil || len(paths) != 5 {
		t.Fatalf("want 5 CRDs, found %v (%v)", paths, err)
	}
	seen := refusals(t)
	total := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		kind := crd.Spec.Names.Kind
		rules := map[string]bool{}
		collectRules(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, rules)
		total += len(rules)
		for message := range rules {
			if !slices.ContainsFunc(seen[kind], func(want string) bool { return strings.Contains(message, want) }) {
				t.Errorf("%s: no test is refused by the rule %q", kind, message)
			}
		}
	}
	t.Logf("%d different rules", total)
}

// collectRules gathers the messages of a schema's rules. A rule without a message
// is an error for whoever reads it, so it is gathered as the rule itself.
func collectRules(schema *apiextensionsv1.JSONSchemaProps, rules map[string]bool) {
	for _, rule := range schema.XValidations {
		if rule.Message == "" {
			rules["rule without a message: "+rule.Rule] = true
			continue
		}
		rules[rule.Message] = true
	}
	for _, property := range schema.Properties {
		collectRules(&property, rules)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collectRules(schema.Items.Schema, rules)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collectRules(schema.AdditionalProperties.Schema, rules)
	}
}
