package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// selection is a namespace store that answers with a function.
type selection func(update contract.ToolNamespaceUpdate) ([]string, error)

func (s selection) UpdateToolNamespaces(_ context.Context, _ contract.AccessContext, u contract.ToolNamespaceUpdate) ([]string, error) {
	return s(u)
}

func namespaceWorld() *kerneltest.World {
	w := kerneltest.New()
	repo := probe(func(tool *kernel.Tool) {
		tool.Definition.Name, tool.Definition.Namespace, tool.Definition.Source = "repo.a", "repo", "mcp"
	})
	again := probe(func(tool *kernel.Tool) { tool.Definition.Name, tool.Definition.Namespace = "repo.b", "repo" })
	w.Options.Tools = append(kerneltest.FilesTools(&kerneltest.Plane{}), repo, again)
	return w
}

func catalogue(files, repo, sharedos bool) contract.ToolNamespaceCatalog {
	c := contract.ToolNamespaceCatalog{Namespaces: []contract.ToolNamespaceEntry{
		{Namespace: "files", Sources: []string{"sharedos"}, ToolCount: 3, Enabled: files},
		{Namespace: "repo", Sources: []string{"mcp", "sharedos"}, ToolCount: 2, Enabled: repo},
		{Namespace: "sharedos", Sources: []string{"sharedos"}, ToolCount: 1, Enabled: sharedos},
	}, Summary: contract.ToolNamespaceSummary{Total: 3}}
	for _, e := range c.Namespaces {
		if e.Enabled {
			c.Summary.Enabled++
		} else {
			c.Summary.Disabled++
		}
	}
	return c
}

func TestToolNamespaces(t *testing.T) {
	t.Parallel()
	w := namespaceWorld()
	ac := w.Context()
	ac.EnabledToolNamespaces = []string{"files", "unregistered"}
	got, err := w.Kernel(t).ToolNamespaces(t.Context(), ac)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalogue(true, false, false), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if e := lastEvent(t, w, audit.NamespacesListed); e.Outcome != audit.Succeeded {
		t.Errorf("recorded %+v", e)
	}
	if w.Grants.Loads() != 0 {
		t.Error("listing namespaces loaded authority")
	}
}

func TestToolNamespacesRefuses(t *testing.T) {
	t.Parallel()
	w := namespaceWorld()
	if _, err := w.Kernel(t).ToolNamespaces(t.Context(), contract.AccessContext{}); codeOf(err) != "invalid_context" {
		t.Errorf("no context: %v", err)
	}
	failingProvider(errors.New("x"))(w)
	if _, err := w.Kernel(t).ToolNamespaces(t.Context(), w.Context()); codeOf(err) != "tool_catalog_unavailable" {
		t.Errorf("failing provider: %v", err)
	}
	w = namespaceWorld()
	failAudit(audit.NamespacesListed)(w)
	if _, err := w.Kernel(t).ToolNamespaces(t.Context(), w.Context()); codeOf(err) != "audit_unavailable" {
		t.Errorf("no record: %v", err)
	}
	w = kerneltest.New()
	for i := range contract.MaxNamespaces {
		w.Options.Tools = append(w.Options.Tools, probe(func(tool *kernel.Tool) {
			tool.Definition.Name, tool.Definition.Namespace = fmt.Sprintf("n%d.t", i), fmt.Sprintf("n%d", i)
		}))
	}
	if _, err := w.Kernel(t).ToolNamespaces(t.Context(), w.Context()); codeOf(err) != "tool_catalog_unavailable" {
		t.Errorf("too many namespaces: %v", err)
	}
}

func TestUpdateToolNamespaces(t *testing.T) {
	t.Parallel()
	patch := contract.ToolNamespaceUpdate{Enable: []string{"files", "repo"}, Disable: []string{"sharedos"}}
	tests := map[string]struct {
		update contract.ToolNamespaceUpdate
		store  kernel.NamespaceStore
		world  func(w *kerneltest.World)
		code   string
		want   contract.ToolNamespaceCatalog
	}{
		"all of it":        {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return []string{"files", "repo"}, nil }), want: catalogue(true, true, false)},
		"narrowed":         {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return []string{"files"}, nil }), want: catalogue(true, false, false)},
		"left enabled":     {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return []string{"sharedos"}, nil }), code: "invalid_tool_namespace_selection"},
		"store fails":      {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return nil, errors.New("x") }), code: "tool_namespace_update_failed"},
		"store panics":     {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { panic("x") }), code: "tool_namespace_update_failed"},
		"no store":         {update: patch, code: "tool_namespace_store_not_configured"},
		"nothing to do":    {update: contract.ToolNamespaceUpdate{}, store: selection(nil), code: "invalid_request"},
		"contradictory":    {update: contract.ToolNamespaceUpdate{Enable: []string{"a"}, Disable: []string{"a"}}, store: selection(nil), code: "invalid_request"},
		"provider fails":   {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return nil, nil }), world: failingProvider(errors.New("x")), code: "tool_catalog_unavailable"},
		"without a record": {update: patch, store: selection(func(contract.ToolNamespaceUpdate) ([]string, error) { return nil, nil }), world: failAudit(audit.NamespacesUpdated), code: "audit_unavailable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := namespaceWorld()
			w.Options.Namespaces = tt.store
			if tt.world != nil {
				tt.world(w)
			}
			got, err := w.Kernel(t).UpdateToolNamespaces(t.Context(), w.Context(), tt.update)
			if codeOf(err) != tt.code || (err == nil) != (tt.code == "") {
				t.Fatalf("error = %v, want %s", err, tt.code)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if tt.code == "audit_unavailable" {
				return
			}
			e := lastEvent(t, w, audit.NamespacesUpdated)
			if (e.Outcome == audit.Succeeded) != (tt.code == "") || e.Reason != tt.code {
				t.Errorf("recorded %s, reason %q", e.Outcome, e.Reason)
			}
			if tt.code != "invalid_request" && string(e.Metadata) != `{"enable":["files","repo"],"disable":["sharedos"]}` {
				t.Errorf("recorded %s", e.Metadata)
			}
		})
	}
	w := namespaceWorld()
	if _, err := w.Kernel(t).UpdateToolNamespaces(t.Context(), contract.AccessContext{}, patch); codeOf(err) != "invalid_context" {
		t.Errorf("no context: %v", err)
	}
}
