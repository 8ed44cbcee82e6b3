package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects"
	"github.com/sharedos-dev/operator/snapshot"
)

const world = "w"

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: world, Name: name} }

func principal(name string, kind v1alpha1.AddressKind, authority v1alpha1.ObjectName) *v1alpha1.Principal {
	return &v1alpha1.Principal{ObjectMeta: meta(name), Spec: v1alpha1.PrincipalSpec{
		Address: v1alpha1.NewAddress(kind, name), Authority: authority, Owner: authority, Purposes: []v1alpha1.Purpose{"p", "q"},
	}}
}

func grant(name string, issuer, subject v1alpha1.ObjectName, action v1alpha1.Action, change ...func(*v1alpha1.Grant)) *v1alpha1.Grant {
	g := &v1alpha1.Grant{ObjectMeta: meta(name), Spec: v1alpha1.GrantSpec{Issuer: issuer, Subject: subject, Capabilities: []v1alpha1.Capability{{
		Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{"Work"}},
		Actions:  []v1alpha1.Action{action}, Scope: v1alpha1.ScopeDescendants,
	}}}}
	for _, c := range change {
		c(g)
	}
	return g
}

func constrained(c v1alpha1.GrantConstraints) func(*v1alpha1.Grant) {
	return func(g *v1alpha1.Grant) { g.Spec.Constraints = &c }
}

func inspector(t *testing.T, of ...objects.Object) *snapshot.Inspector {
	t.Helper()
	of = append(of,
		principal("alice", v1alpha1.AddressHuman, ""), principal("bot", v1alpha1.AddressAgent, "alice"), principal("bob", v1alpha1.AddressHuman, ""),
		&v1alpha1.ToolNamespace{ObjectMeta: meta("files"), Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true, Source: v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles}},
		}},
	)
	i, err := snapshot.NewInspector(snapshot.New(of...))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func as(t *testing.T, i *snapshot.Inspector, purpose string) contract.AccessContext {
	t.Helper()
	ac, err := i.Context(world, "bot", purpose, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return ac
}

func need(action string, path ...string) contract.CapabilityRequirement {
	return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: action}
}

func TestExplainJudgesEachGrantAlone(t *testing.T) {
	i := inspector(t,
		grant("z-reads", "alice", "bot", "read"), grant("a-reads-too", "alice", "bot", "read"), grant("lists", "alice", "bot", "list"),
		grant("expired", "alice", "bot", "read", constrained(v1alpha1.GrantConstraints{ExpiresAt: "2026-01-01T00:00:00Z"})),
		grant("other-purpose", "alice", "bot", "read", constrained(v1alpha1.GrantConstraints{Purposes: []v1alpha1.Purpose{"q"}})),
		grant("spent", "alice", "bot", "read", constrained(v1alpha1.GrantConstraints{MaxUses: new(int64(2))}), func(g *v1alpha1.Grant) { g.Status.Uses = 2 }),
		grant("bobs", "bob", "bot", "read"), grant("for-bob", "alice", "bob", "read"), grant("lost", "gone", "bot", "read"),
		grant("orphan", "alice", "bot", "read", func(g *v1alpha1.Grant) { g.Spec.ParentGrant = "nowhere" }),
		grant("revoked", "alice", "bot", "read", func(g *v1alpha1.Grant) { g.Spec.Revoked = true }),
	)
	ac := as(t, i, "p")
	got := map[string]string{}
	order := ""
	for _, v := range i.Explain(t.Context(), ac, need("read", "Work", "a.md")) {
		got[v.Grant.Name] = v.Reason
		if v.Allows {
			got[v.Grant.Name] = "allows"
		}
		if v.Grant.Name < order {
			t.Errorf("%s after %s", v.Grant.Name, order)
		}
		order = v.Grant.Name
	}
	want := map[string]string{
		"a-reads-too": "allows", "z-reads": "allows", "lists": "capability", "expired": "window", "other-purpose": "purpose", "spent": "exhausted",
		"bobs": snapshot.ReasonOtherIssuer, "for-bob": snapshot.ReasonOtherSubject, "lost": snapshot.ReasonUnresolved,
		"orphan": "delegation", "revoked": "window",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	// Looking at one Grant alone must not outlast the look.
	if a := i.Authorize(t.Context(), ac, need("list", "Work")); a.MatchedGrantID != "lists" {
		t.Errorf("after explaining: %+v", a)
	}
	for _, v := range i.Standing(t.Context(), ac) {
		if v.Grant.Name == "lists" && !v.Allows {
			t.Errorf("a usable Grant is said to be of no use: %+v", v)
		}
	}
}

func TestUses(t *testing.T) {
	i := inspector(t, grant("twice", "alice", "bot", "read", constrained(v1alpha1.GrantConstraints{MaxUses: new(int64(2))})))
	ac := as(t, i, "")
	for range 5 { // asking spends nothing
		if a := i.Authorize(t.Context(), ac, need("read", "Work")); !a.Allowed {
			t.Fatalf("%+v", a)
		}
	}
	i.Uses().Set(world, "twice", 2)
	if a := i.Authorize(t.Context(), ac, need("read", "Work")); a.ReasonCode != contract.CodeGrantExhausted {
		t.Errorf("%+v", a)
	}
	i.Uses().Reset()
	use := kernel.Use{NamespaceID: world, GrantID: "twice", MaxUses: 2}
	for n, want := range []bool{true, true, false} {
		if ok, err := i.Uses().Consume(t.Context(), use); ok != want || err != nil {
			t.Errorf("use %d: %t %v", n, ok, err)
		}
	}
	if _, err := i.Uses().Consume(t.Context(), kernel.Use{NamespaceID: world, GrantID: "gone", MaxUses: 1}); err == nil {
		t.Error("a use of a Grant that is not there was spent")
	}
}

func TestToolsAreDescribed(t *testing.T) {
	declared := func(name v1alpha1.ToolName, digest v1alpha1.Digest) v1alpha1.ToolDeclaration {
		return v1alpha1.ToolDeclaration{Name: name, SchemaDigest: digest, ReadWrite: v1alpha1.ToolRead, Requirement: v1alpha1.ToolRequirement{
			Action: "read", Resource: v1alpha1.RequiredResource{Namespace: "notes", Path: "[]", Ceiling: []v1alpha1.PathSegment{"books"}},
		}}
	}
	notes := grant("notes", "alice", "bot", "read", func(g *v1alpha1.Grant) {
		g.Spec.Capabilities[0].Resource = v1alpha1.CapabilityResource{Namespace: "notes", Path: []v1alpha1.PathSegment{"books", "atlas"}}
	})
	i := inspector(t, grant("g", "alice", "bot", "read"), notes,
		&v1alpha1.ToolNamespace{ObjectMeta: meta("notes"), Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true, Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{}},
			Tools: []v1alpha1.ToolDeclaration{declared("notes.read", "d"), declared("notes.unpinned", "")},
		}},
		&v1alpha1.ToolNamespace{ObjectMeta: meta("repo"), Spec: v1alpha1.ToolNamespaceSpec{ // off
			Source: v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneRepo}},
		}},
	)
	definitions, err := i.Tools(t.Context(), as(t, i, ""))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"files.read", "notes.read"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestReader(t *testing.T) {
	s := snapshot.New(grant("g", "alice", "bot", "read"), &v1alpha1.Harness{ObjectMeta: meta("h")}, &v1alpha1.Turn{ObjectMeta: meta("t")})
	g := &v1alpha1.Grant{}
	if err := s.Get(t.Context(), types.NamespacedName{Namespace: world, Name: "g"}, g); err != nil || g.UID == "" || g.Generation != 1 || g.CreationTimestamp.IsZero() {
		t.Errorf("%+v %v", g.ObjectMeta, err)
	}
	if err := s.Get(t.Context(), types.NamespacedName{Namespace: "other", Name: "g"}, g); !apierrors.IsNotFound(err) {
		t.Errorf("another world's: %v", err)
	}
	var list v1alpha1.GrantList
	if err := s.List(t.Context(), &list, world); err != nil || len(list.Items) != 1 {
		t.Errorf("%d listed: %v", len(list.Items), err)
	}
	if err := s.List(t.Context(), &list, "other"); err != nil || len(list.Items) != 0 {
		t.Errorf("another world's: %d listed: %v", len(list.Items), err)
	}
}

func TestResources(t *testing.T) {
	for text, want := range map[string]string{
		"files:": "files:", "files:a/b": "files:a/b", "files:a": "files:a", "sharedos.execution:agent/x": "sharedos.execution:agent/x",
		"files": "", "files:a//b": "", "files:/a": "", "files:a/": "", "files:../a": "", ":a": "", "files: a": "", "files:a\\b": "",
	} {
		ref, err := snapshot.ParseResource(text)
		if (err == nil) != (want != "") || (err == nil && snapshot.FormatResource(ref.Namespace, ref.Path) != want) {
			t.Errorf("%q: %+v %v", text, ref, err)
		}
	}
	for text, want := range map[string]contract.Scope{
		"files:**": contract.ScopeDescendants, "files:a/**": contract.ScopeDescendants, "files:a": contract.ScopeExact, "files:a**": contract.ScopeExact,
	} {
		ref, scope, err := snapshot.ParsePlace(text)
		if err != nil || scope != want || snapshot.FormatPlace(ref.Namespace, ref.Path, scope) != text {
			t.Errorf("%q: %+v %s %v", text, ref, scope, err)
		}
	}
}
