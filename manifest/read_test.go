package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/manifest"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const principal = `apiVersion: sharedos.dev/v1alpha1
kind: Principal
metadata: {name: NAME}
spec: {address: {kind: human, userId: NAME}}
`

func named(name string) string { return strings.ReplaceAll(principal, "NAME", name) }

// TestSamples: what the repository shows is read without a fault.
func TestSamples(t *testing.T) {
	set, err := manifest.Read([]string{"../config/samples", "../examples/policies"}, manifest.Options{Namespace: "here"})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Objects) < 24 || len(set.Tests) != 1 {
		t.Errorf("%d objects, %d tests", len(set.Objects), len(set.Tests))
	}
	for _, o := range set.Objects {
		if o.GetNamespace() != "here" && o.GetNamespace() != "team-atlas" {
			t.Errorf("%s is in namespace %q", o.GetName(), o.GetNamespace())
		}
	}
}

func TestWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "# nothing\n---\n"+named("a")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\nanything: [goes]\n---\n- 1\n")
	write(t, dir, "sub/b.yml", named("b"))
	write(t, dir, "c.json", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"sharedos.dev/v1alpha1","kind":"Principal","metadata":{"name":"c"},"spec":{"address":{"kind":"human","userId":"c"}}}]}`)
	write(t, dir, "kustomization.yaml", "kind: [")
	write(t, dir, ".hidden/d.yaml", "kind: [")
	write(t, dir, "notes.txt", "kind: [")
	write(t, dir, "e.yaml", "x: &address {kind: human, userId: e}\n---\n"+`apiVersion: sharedos.dev/v1alpha1
kind: Principal
metadata: &metadata {name: e, labels: {n: "1"}}
spec: {address: {kind: human, userId: e}, purposes: [2026-09-01, p]}
status: {observedGeneration: 7}
`)
	set, err := manifest.Read([]string{dir}, manifest.Options{Namespace: "w"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, o := range set.Objects {
		names = append(names, o.GetName())
		if p, ok := o.(*v1alpha1.Principal); ok && p.Name == "e" {
			if p.Status.ObservedGeneration != 0 || p.Spec.Purposes[0] != "2026-09-01" {
				t.Errorf("%+v", p)
			}
			if at := set.Position(o, "spec.purposes[0]"); at.Line != 6 || filepath.Base(at.File) != "e.yaml" {
				t.Errorf("position %s", at)
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "c", "e", "b"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestLinks: what a folder shows is read or said to be left out, never passed over.
func TestLinks(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	write(t, elsewhere, "real.yaml", named("linked"))
	write(t, dir, "a.yaml", named("a"))
	link := func(name, to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("b.yaml", filepath.Join(elsewhere, "real.yaml"))
	link("..data", elsewhere) // as in a mounted ConfigMap
	link("notes.txt", "nowhere")
	whole := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, whole); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, whole, whole + "/"} {
		set, err := manifest.Read([]string{root}, manifest.Options{Namespace: "here"})
		if err != nil || len(set.Objects) != 2 {
			t.Errorf("%s: %v", root, err)
		}
	}
	link("folder", elsewhere)
	link("gone.yaml", "nowhere")
	link("loop.yaml", "loop.yaml")
	link("device.yaml", "/dev/zero")
	_, err := manifest.Read([]string{dir}, manifest.Options{Namespace: "here"})
	if err == nil {
		t.Fatal("links that cannot be read are passed over")
	}
	for _, want := range []string{
		"folder: links to folders are not followed", "gone.yaml: the link leads nowhere", "loop.yaml: the link leads nowhere", "device.yaml: it is no regular file",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestFaultsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":          {"a: 1\nb: [\n", ":2: not YAML"},
		"key twice":         {named("x") + "kind: Principal\n", `:5: the key "kind" is given twice, first in line 2`},
		"unknown field":     {named("x") + "sepc: {}\n", ":5: sepc: there is no such field"},
		"unknown in depth":  {strings.Replace(named("x"), "userId: x", "userId: x, nickname: y", 1), ":4: spec.address.nickname: there is no such field"},
		"unknown metadata":  {strings.Replace(named("x"), "{name: x}", "{name: x, lables: {}}", 1), `:3: strict decoding error: unknown field "metadata.lables"`},
		"wrong type":        {strings.Replace(named("x"), "userId: x", "userId: 7", 1), ":4: spec.address.userId: got number, want string"},
		"wrong value":       {strings.Replace(named("x"), "kind: human", "kind: robot", 1), ":4: spec.address.kind: value must be one of"},
		"missing field":     {"apiVersion: sharedos.dev/v1alpha1\nkind: Principal\nmetadata: {name: x}\nspec: {}\n", "address"},
		"rule":              {strings.Replace(named("x"), "userId: x", "agentId: x", 1), ":4: spec.address: "},
		"rule with a field": {"apiVersion: sharedos.dev/v1alpha1\nkind: Grant\nmetadata: {name: g}\nspec:\n  issuer: a\n  subject: b\n  parentGrant: g\n  capabilities: [{resource: {namespace: n, path: []}, actions: [x], scope: exact}]\n", ":7: spec.parentGrant: parentGrant must not be the grant itself"},
		"unknown kind":      {"apiVersion: sharedos.dev/v1alpha1\nkind: Wish\nmetadata: {name: x}\n", `:2: sharedos.dev/v1alpha1 has no kind "Wish"`},
		"unknown version":   {"apiVersion: sharedos.dev/v9\nkind: Grant\nmetadata: {name: x}\n", `has no kind "Grant"`},
		"no name":           {strings.Replace(named("x"), "{name: x}", "{}", 1), ":3: metadata.name: must be set"},
		"twice":             {named("x") + "---\n" + named("x"), ":8: Principal \"x\" is given twice, first in "},
		"merge key":         {"apiVersion: sharedos.dev/v1alpha1\nkind: Principal\nmetadata: {name: x}\nspec:\n  <<: {}\n", ":5: the key of a mapping must be plain text"},
		"template":          {"apiVersion: sharedos.dev/v1alpha1\nkind: Harness\nmetadata: {name: x}\nspec:\n  type: custom\n  template: {spec: {containers: 7}}\n", ":6: spec.template: "},
		"number":            {"apiVersion: sharedos.dev/v1alpha1\nkind: Principal\nmetadata: {name: x, generation: .inf}\nspec: {}\n", ":3: \".inf\" is no number"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "f.yaml", c.text)
			_, err := manifest.Read([]string{dir}, manifest.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "f.yaml:") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestAliasesDoNotExplode: a small file must not become a large document.
func TestAliasesDoNotExplode(t *testing.T) {
	text := "apiVersion: sharedos.dev/v1alpha1\nkind: Grant\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		n, m := string(rune('0'+i)), string(rune('1'+i))
		text += "a" + m + ": &a" + m + " [" + strings.Repeat("*a"+n+",", 9) + "*a" + n + "]\n"
	}
	dir := t.TempDir()
	write(t, dir, "f.yaml", text)
	if _, err := manifest.Read([]string{dir}, manifest.Options{}); err == nil || !strings.Contains(err.Error(), "the document is too large") {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(named("x")))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("apiVersion: sharedos.dev/v1alpha1\nkind: Grant\nmetadata: &m {x: *m}\n"))
	dir := f.TempDir()
	path := filepath.Join(dir, "f.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := manifest.Read([]string{path}, manifest.Options{Namespace: "w"})
		if err != nil && err.Error() == "" {
			t.Error("a fault without words")
		}
		for _, o := range set.Objects {
			if o.GetName() == "" || o.GetNamespace() == "" || set.Document(o) == nil {
				t.Errorf("an object without its name, namespace or document: %+v", o)
			}
		}
	})
}
