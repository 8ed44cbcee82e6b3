package plugin

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/config/crd"
)

// definitions compares the resource definitions with those that this plugin was built
// with: a definition of an older version drops fields without a word, and checks less.
func (p *patient) definitions(ctx context.Context) {
	const check = "resource definitions"
	const fix = "upgrade the chart with crds.install=true, or use the plugin of the installed version"
	shipped, err := shippedDefinitions()
	if err != nil {
		p.failed(check, err, fix)
		return
	}
	missing, older := []string{}, []string{}
	for _, want := range shipped {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		err := p.client.Get(ctx, client.ObjectKey{Name: want.GetName()}, object)
		plural, _, _ := strings.Cut(want.GetName(), ".")
		switch {
		case apierrors.IsForbidden(err):
			p.served(check, fix)
			return
		case apierrors.IsNotFound(err), err == nil && !established(object):
			missing = append(missing, plural)
		case err != nil:
			p.failed(check, err, fix)
			return
		default:
			if lacks := definitionLacks(object.Object, want.Object); len(lacks) > 0 {
				older = append(older, plural+" lacks "+some(lacks))
			}
		}
	}
	if len(missing) > 0 {
		p.say(check, stateFault, "missing or not established: "+strings.Join(missing, ", "), fix)
	}
	if len(older) > 0 {
		p.say(check, stateFault, "older than this plugin: "+strings.Join(older, "; "), fix)
	}
	if len(missing)+len(older) == 0 {
		p.ok(check, "all five are established and current")
	}
}

// served asks what is served, for those who may not read definitions.
func (p *patient) served(check, fix string) {
	list, err := p.set.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		p.failed(check, err, fix)
		return
	}
	p.ok(check, "%s is served with %d resources", v1alpha1.GroupVersion, len(list.APIResources))
}

func established(object *unstructured.Unstructured) bool {
	for _, entry := range listAt(object.Object, "status", "conditions") {
		if entry["type"] == "Established" && entry["status"] == "True" {
			return true
		}
	}
	return false
}

// shippedDefinitions are the definitions of this build, by name.
func shippedDefinitions() ([]*unstructured.Unstructured, error) {
	paths, err := fs.Glob(crd.Files(), "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list resource definitions: %w", err)
	}
	out := make([]*unstructured.Unstructured, 0, len(paths))
	for _, path := range paths {
		data, err := fs.ReadFile(crd.Files(), path)
		if err != nil {
			return nil, fmt.Errorf("read resource definition: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &object.Object); err != nil {
			return nil, fmt.Errorf("read resource definition %s: %w", path, err)
		}
		out = append(out, object)
	}
	return out, nil
}

// definitionLacks names what one definition has and the other, installed one has not.
func definitionLacks(have, want map[string]any) []string {
	installed := map[any]map[string]any{}
	for _, version := range listAt(have, "spec", "versions") {
		installed[version["name"]] = version
	}
	var out []string
	for _, version := range listAt(want, "spec", "versions") {
		there := installed[version["name"]]
		if there == nil || there["served"] != true {
			out = append(out, fmt.Sprintf("version %s", version["name"]))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(mapAt(version, "subresources"))) {
			if _, ok := mapAt(there, "subresources")[name]; !ok {
				out = append(out, "subresource "+name)
			}
		}
		out = schemaLacks("", mapAt(there, "schema", "openAPIV3Schema"), mapAt(version, "schema", "openAPIV3Schema"), out)
	}
	return out
}

// schemaLacks adds the fields, values and rules that only the wanted schema has. A rule
// counts by what it decides, not by what it says.
func schemaLacks(path string, have, want map[string]any, out []string) []string {
	rules := map[any]bool{}
	for _, rule := range listAt(have, "x-kubernetes-validations") {
		rules[rule["rule"]] = true
	}
	for _, rule := range listAt(want, "x-kubernetes-validations") {
		if !rules[rule["rule"]] {
			out = append(out, "a rule about "+orObject(path))
			break
		}
	}
	values, _ := have["enum"].([]any)
	wanted, _ := want["enum"].([]any)
	for _, value := range wanted {
		if len(values) > 0 && !slices.Contains(values, value) {
			out = append(out, fmt.Sprintf("value %v of %s", value, orObject(path)))
		}
	}
	fields, theirs := mapAt(want, "properties"), mapAt(have, "properties")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		there, ok := theirs[name].(map[string]any)
		field, known := fields[name].(map[string]any)
		switch {
		case !ok:
			out = append(out, at)
		case known:
			out = schemaLacks(at, there, field, out)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner := mapAt(want, key); inner != nil {
			out = schemaLacks(path+"[]", mapAt(have, key), inner, out)
		}
	}
	return out
}

func orObject(path string) string {
	if path == "" {
		return "the object"
	}
	return path
}

// mapAt is the object at the path, or nil.
func mapAt(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		inner, ok := object[name].(map[string]any)
		if !ok {
			return nil
		}
		object = inner
	}
	return object
}

// listAt are the objects of the list at the path.
func listAt(object map[string]any, path ...string) []map[string]any {
	list, _ := mapAt(object, path[:len(path)-1]...)[path[len(path)-1]].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		if inner, ok := entry.(map[string]any); ok {
			out = append(out, inner)
		}
	}
	return out
}

// maxNamed is how many of a kind a finding names.
const maxNamed = 3

// some names the first few.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
