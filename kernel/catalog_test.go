package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestCatalogueIsBehindThreeGates(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("r").Obj(), kerneltest.MakeGrant("d").Descendants("files", nil, "delete").MaxUses(1).Obj(), kerneltest.Escalation(),
		kerneltest.MakeGrant("frozen").Descendants("files", nil, "list").Obj())
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	w.Options.Ceiling = ceilingOf("frozen", "")
	turn := w.Turn(t)
	c, err := turn.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"files.delete", "files.read", "sharedos.escalate"}, c.Names()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if c.Len() != 3 || !c.Has("files.read") || c.Has("files.list") || c.Has("messages.request") {
		t.Errorf("catalogue = %v", c.Names())
	}
	if w.Uses.Spent("d") != 0 {
		t.Error("listing spent a use")
	}
	e := lastEvent(t, w, audit.ToolCatalogListed)
	if e.Outcome != audit.Succeeded || e.CatalogHash != c.Hash() || e.AuthorityHash != turn.AuthorityHash() || string(e.Metadata) != `{"toolCount":3}` {
		t.Errorf("recorded %+v", e)
	}
	want, err := contract.CatalogHash(c.Published())
	if err != nil || c.Hash() != want {
		t.Errorf("hash = %s, want %s, %v", c.Hash(), want, err)
	}
	off := w.Context()
	off.EnabledToolNamespaces = nil
	none, err := w.Kernel(t).Tools(t.Context(), off)
	if err != nil || none.Len() != 0 || none.Hash() == c.Hash() {
		t.Errorf("with nothing enabled: %v, %v", none.Names(), err)
	}
	if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.list", `{"path":[]}`)); r.Error.Code != "tool_unavailable" {
		t.Errorf("a frozen tool: %+v", r.Error)
	}
	if e := lastEvent(t, w, audit.ToolInvoked); len(e.RejectedGrants) != 4 || e.RejectedGrants[2] != (audit.RejectedGrant{GrantID: "frozen", Reason: "host_policy_denied"}) {
		t.Errorf("the frozen grant is not named: %+v", e.RejectedGrants)
	}
}

func TestCatalogueIsServedOnceAndStays(t *testing.T) {
	t.Parallel()
	calls := 0
	w := kerneltest.New(readGrant("r").Expires(time.Hour).Obj())
	ceiling := kerneltest.Need("files", "read", "Work")
	w.Options.Providers = []kernel.ToolProvider{kerneltest.ToolsFunc(func(_ context.Context, ac contract.AccessContext) ([]kernel.Tool, error) {
		calls++
		ac.EnabledToolNamespaces[0] = "changed"
		return []kernel.Tool{probe(func(tool *kernel.Tool) { tool.Definition.RequiredCapability = ceiling })}, nil
	})}
	turn := w.Turn(t)
	first, err := turn.Catalog(t.Context())
	if err != nil || !first.Has("files.probe") {
		t.Fatalf("%v, %v", first.Names(), err)
	}
	ceiling = kerneltest.Need("repo", "read") // a provider moves the ceiling mid-turn
	w.Clock.Advance(2 * time.Hour)            // and the grant expires
	second, err := turn.Catalog(t.Context())
	if err != nil || second != first || calls != 1 {
		t.Errorf("a turn's catalogue was resolved %d times", calls)
	}
	if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.probe", `{"path":["Work"]}`)); r.Error == nil || r.Error.Code != "no_matching_grant" {
		t.Errorf("a call in the served catalogue after its grant expired: %+v", r.Error)
	}
	first.Published()[0].InputSchema[0] = 'X'
	*first.Published()[0].Annotations.ReadOnlyHint = false
	first.Definitions()[0].InputSchema[0] = 'X'
	if !json.Valid(first.Published()[0].InputSchema) || !*first.Published()[0].Annotations.ReadOnlyHint || !json.Valid(first.Definitions()[0].InputSchema) {
		t.Error("a reader can change the catalogue")
	}
}

func TestWhatBecomesDiscoverableLaterIsNotInTheCatalogue(t *testing.T) {
	t.Parallel()
	frozen := true
	w := kerneltest.New(readGrant("r").Obj())
	w.Options.Tools = []kernel.Tool{probe(nil)}
	w.Options.Ceiling = kernel.HostCeilingFunc(func(kernel.CeilingQuery) (bool, error) { return !frozen, nil })
	turn := w.Turn(t)
	if c, err := turn.Catalog(t.Context()); err != nil || c.Len() != 0 {
		t.Fatalf("%v, %v", c.Names(), err)
	}
	frozen = false
	if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.probe", `{"path":["Work"]}`)); r.Error == nil || r.Error.Code != "tool_unavailable" {
		t.Errorf("a tool outside the served catalogue: %+v", r)
	}
}

func TestNothingIsListedFromAPartialSet(t *testing.T) {
	t.Parallel()
	many := make([]kernel.Tool, contract.MaxCatalogueTools+1)
	for i := range many {
		many[i] = probe(func(tool *kernel.Tool) { tool.Definition.Name = fmt.Sprintf("files.t%d", i) })
	}
	for name, tt := range map[string]struct {
		tools []kernel.Tool
		err   error
		cause string
	}{
		"fails":     {nil, errors.New("x"), "tool_provider_failed"},
		"duplicate": {[]kernel.Tool{probe(nil)}, nil, "duplicate_tool"},
		"malformed": {[]kernel.Tool{probe(func(tool *kernel.Tool) { tool.Definition.Name = "a b" })}, nil, "invalid_tool_definition"},
		"too many":  {many, nil, "tool_limit_exceeded"},
	} {
		w := kerneltest.New(readGrant("r").Obj())
		w.Options.Tools = []kernel.Tool{probe(nil)}
		w.Options.Providers = []kernel.ToolProvider{kerneltest.ToolsFunc(func(context.Context, contract.AccessContext) ([]kernel.Tool, error) { return tt.tools, tt.err })}
		turn := w.Turn(t)
		if _, err := turn.Catalog(t.Context()); codeOf(err) != "tool_catalog_unavailable" {
			t.Errorf("%s: %v", name, err)
		}
		if e := lastEvent(t, w, audit.ToolCatalogListed); e.Outcome != audit.Denied || e.Cause != tt.cause {
			t.Errorf("%s: recorded %s, cause %q", name, e.Outcome, e.Cause)
		}
		if r := turn.Invoke(t.Context(), kerneltest.Call("c", "files.probe", `{"path":["Work"]}`)); r.Error == nil || r.Error.Code != "tool_catalog_unavailable" {
			t.Errorf("%s: a static tool ran beside a failed provider: %+v", name, r)
		}
	}
}

func TestCatalogueNeedsARecord(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(readGrant("r").Obj())
	turn := w.Turn(t)
	failAudit(audit.ToolCatalogListed)(w)
	if _, err := turn.Catalog(t.Context()); codeOf(err) != "audit_unavailable" {
		t.Errorf("catalogue without a record: %v", err)
	}
	failingProvider(kerneltest.ErrPort)(w)
	if _, err := w.Turn(t).Catalog(t.Context()); codeOf(err) != "audit_unavailable" {
		t.Errorf("refused catalogue without a record: %v", err)
	}
}

func TestRegistrationRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tool *kernel.Tool){
		"no requirement":       func(tool *kernel.Tool) { tool.Requirement = nil },
		"no handler":           func(tool *kernel.Tool) { tool.Handle = nil },
		"malformed definition": func(tool *kernel.Tool) { tool.Definition.Description = "" },
		"schema":               func(tool *kernel.Tool) { tool.Definition.InputSchema = contract.Object(`{"type":"nonsense"}`) },
		"output schema":        func(tool *kernel.Tool) { tool.Definition.OutputSchema = contract.Object(`{"type":1}`) },
		"remote reference": func(tool *kernel.Tool) {
			tool.Definition.InputSchema = contract.Object(`{"$ref":"https://example.com/s.json"}`)
		},
		"file reference": func(tool *kernel.Tool) {
			tool.Definition.InputSchema = contract.Object(`{"$ref":"file:///etc/passwd"}`)
		},
		"inexact number": func(tool *kernel.Tool) { tool.Definition.InputSchema = contract.Object(`{"maximum":9007199254740993}`) },
		"inexact in a list": func(tool *kernel.Tool) {
			tool.Definition.InputSchema = contract.Object(`{"enum":[1,0.1000000000000000055511151231257827]}`)
		},
		"underflowing number": func(tool *kernel.Tool) { tool.Definition.InputSchema = contract.Object(`{"minimum":1e-400}`) },
		"inexact in output": func(tool *kernel.Tool) {
			tool.Definition.OutputSchema = contract.Object(`{"const":12345678901234567891}`)
		},
	} {
		o := kerneltest.New().Options
		o.Tools = []kernel.Tool{probe(change)}
		if _, err := kernel.New(o); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
	for name, schema := range map[string]string{
		"exact big": `{"maximum":9007199254740992}`, "exponent": `{"maximum":1e21}`, "fraction": `{"multipleOf":0.1}`, "local reference": `{"$defs":{"p":{"type":"array"}},"properties":{"path":{"$ref":"#/$defs/p"}}}`,
	} {
		o := kerneltest.New().Options
		o.Tools = []kernel.Tool{probe(func(tool *kernel.Tool) { tool.Definition.InputSchema = contract.Object(schema) })}
		if _, err := kernel.New(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCatalogueViews(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.MakeGrant("r").Descendants("files", nil, "*").Obj())
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	c, err := w.Turn(t).Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	only := c.Only([]string{"files.read", "files.absent"})
	if diff := cmp.Diff([]string{"files.read"}, only.Names()); diff != "" || only.Hash() == c.Hash() {
		t.Errorf("narrowed: %s", diff)
	}
	if !c.Repeatable("files.read") || c.Repeatable("files.delete") || c.Repeatable("absent") {
		t.Error("what may be repeated is wrong")
	}
	if !c.Operates("files") || c.Operates("repo") {
		t.Error("where the tools operate is wrong")
	}
	d, ok := c.Definition("files.delete")
	if !ok || d.RequiredCapability.Action != "delete" || !*d.Annotations.Destructive {
		t.Errorf("definition = %+v", d)
	}
	if _, ok := c.Definition("absent"); ok {
		t.Error("an absent tool has a definition")
	}
	args, err := kernel.ParseArguments(contract.Object(`{"path":[]}`))
	if err != nil || !c.ValidArguments("files.read", args) || c.ValidArguments("absent", args) {
		t.Error("arguments are judged wrongly")
	}
}

// TestEqualDefinitionsShareTheirSchemas compiles more definitions than the cache
// holds and still lists each with its own schema.
func TestDefinitionsBeyondTheCacheAreStillThemselves(t *testing.T) {
	t.Parallel()
	round := 0
	w := kerneltest.New(readGrant("r").Obj())
	w.Options.Providers = []kernel.ToolProvider{kerneltest.ToolsFunc(func(context.Context, contract.AccessContext) ([]kernel.Tool, error) {
		tools := make([]kernel.Tool, 400)
		for i := range tools {
			tools[i] = probe(func(tool *kernel.Tool) {
				tool.Definition.Name = fmt.Sprintf("files.t%d", i)
				tool.Definition.Description = fmt.Sprintf("round %d", round)
				tool.Definition.Annotations = &contract.ToolAnnotations{Idempotent: new(round%2 == 0)}
			})
		}
		return tools, nil
	})}
	k := w.Kernel(t)
	for round = range 7 {
		c, err := k.Tools(t.Context(), w.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Published() {
			if p.Description != fmt.Sprintf("round %d", round) || *p.Annotations.IdempotentHint != (round%2 == 0) {
				t.Fatalf("round %d lists %+v", round, p)
			}
		}
	}
}
