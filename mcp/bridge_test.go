package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/mcp"
)

// harness is a runtime that speaks MCP to a bridge inside its turn.
type harness struct {
	drive  func(server *mcp.Server, bridge *mcp.TurnBridge)
	bridge *mcp.TurnBridge
}

func (h *harness) Run(_ context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
	h.bridge = mcp.OpenTurnBridge(mcp.TurnBridgeOptions{
		Catalogue: req.Catalogue, Host: host, Now: func() time.Time { return epoch },
	})
	defer h.bridge.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: h.bridge})
	if err != nil {
		return envelope.Outcome{}, err
	}
	h.drive(server, h.bridge)
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: contract.Value(`"done"`)}, nil
}

// callOutcome is what a harness sees of one call.
type callOutcome struct {
	Text   string
	Status string
	Code   string
}

func callTool(tb testing.TB, server *mcp.Server, name, arguments string) callOutcome {
	tb.Helper()
	raw := server.Handle(tb.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`))
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			Meta    map[string]string `json:"_meta"`
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		tb.Fatalf("answer %s: %v", raw, err)
	}
	o := callOutcome{Status: answer.Result.Meta["sharedos/status"], Code: answer.Result.Meta["sharedos/code"]}
	if len(answer.Result.Content) == 1 && o.Status == "" {
		o.Text = answer.Result.Content[0].Text
	}
	return o
}

// world is a kernel with the files tools, and grants to read below Work.
func world(grants ...contract.Grant) *kerneltest.World {
	all := append([]contract.Grant{
		kerneltest.Admission(),
		kerneltest.MakeGrant("read").Descendants("files", []string{"Work"}, "read").Obj(),
	}, grants...)
	w := kerneltest.New(all...)
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	return w
}

// TestTurnBridge drives a whole turn through MCP: allowed, denied, an alias, an
// unexposed name, the escalation, and what comes after it.
func TestTurnBridge(t *testing.T) {
	t.Parallel()
	w := world(kerneltest.Escalation())
	var got []callOutcome
	h := &harness{drive: func(server *mcp.Server, _ *mcp.TurnBridge) {
		got = append(got,
			callTool(t, server, "files.read", `{"path":["Work","plan"]}`),
			callTool(t, server, "files_read", `{"path":["Home"]}`),
			callTool(t, server, "mcp__sharedos__files_delete", `{"path":["Work"]}`),
			callTool(t, server, "files.read", `{"path":"Work"}`),
			callTool(t, server, "sharedos_escalate", `{"reason":"Home is needed."}`),
			callTool(t, server, "files.read", `{"path":["Work"]}`),
			callTool(t, server, "sharedos.escalate", `{"reason":"again"}`),
		)
	}}
	result := envelope.New(w.Kernel(t), envelope.Options{}).Run(t.Context(), w.Request(), h)
	const note = "A human will decide. This turn has ended by asking: no further call runs on it, and nothing was granted."
	want := []callOutcome{
		{Text: `{"path":["Work","plan"]}`},
		{Status: "denied", Code: "no_matching_grant"},
		{Status: "denied", Code: "tool_unavailable"},
		{Status: "failed", Code: "invalid_tool_arguments"},
		{Text: `{"escalated":true,"note":"` + note + `","reason":"Home is needed."}`},
		{Status: "denied", Code: "escalation_pending"},
		{Status: "denied", Code: "escalation_pending"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if result.Status != contract.StatusEscalated || result.Escalation == nil || result.Escalation.Reason != "Home is needed." {
		t.Errorf("ending %s, escalation %v", result.Status, result.Escalation)
	}
	aliases := []mcp.AliasRecord{
		{Alias: "files_read", Tool: "files.read", At: contract.At(epoch)},
		{Alias: "sharedos_escalate", Tool: "sharedos.escalate", At: contract.At(epoch)},
	}
	if diff := cmp.Diff(aliases, h.bridge.Aliases()); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
}

// TestTurnBridgeWithoutTheAffordance: asking is a tool like any other when no grant
// offers it.
func TestTurnBridgeWithoutTheAffordance(t *testing.T) {
	t.Parallel()
	w := world()
	var got []callOutcome
	h := &harness{drive: func(server *mcp.Server, _ *mcp.TurnBridge) {
		got = append(got, callTool(t, server, "sharedos.escalate", `{"reason":"r"}`), callTool(t, server, "files.read", `{"path":["Work"]}`))
	}}
	result := envelope.New(w.Kernel(t), envelope.Options{}).Run(t.Context(), w.Request(), h)
	want := []callOutcome{{Status: "denied", Code: "tool_unavailable"}, {Text: `{"path":["Work"]}`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if result.Status != contract.StatusSucceeded {
		t.Errorf("ending %s", result.Status)
	}
}

// TestTurnBridgeAliasesStayOut: the alias is on the bridge and on no event.
func TestTurnBridgeAliasesStayOut(t *testing.T) {
	t.Parallel()
	w := world()
	h := &harness{drive: func(server *mcp.Server, _ *mcp.TurnBridge) { callTool(t, server, "files_read", `{"path":["Work"]}`) }}
	result := envelope.New(w.Kernel(t), envelope.Options{}).Run(t.Context(), w.Request(), h)
	requested := 0
	for _, e := range result.Events {
		var data struct{ Tool string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if e.Type == contract.EventToolRequested {
			requested++
			if data.Tool != "files.read" {
				t.Errorf("event names %q", data.Tool)
			}
		}
	}
	if requested != 1 {
		t.Errorf("%d calls in the events", requested)
	}
}

// hostFunc is a turn's host made of a function.
type hostFunc func(ctx context.Context, tool string, step *int64) contract.ToolResult

func (f hostFunc) Invoke(ctx context.Context, tool string, _ contract.Object, step *int64) contract.ToolResult {
	return f(ctx, tool, step)
}

// TestClosedTurnBridge: a running call is cancelled and its late result discarded;
// afterwards the door is shut for every method.
func TestClosedTurnBridge(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{
		Catalogue: catalogueOf(t, plainTool("files.read")),
		Host: hostFunc(func(ctx context.Context, tool string, _ *int64) contract.ToolResult {
			close(started)
			<-ctx.Done()
			return succeed(mcp.Invocation{Tool: tool}, `"late"`)
		}),
	})
	server := newServer(t, mcp.ServerOptions{Invoker: bridge})
	late := make(chan string, 1)
	go func() { late <- string(server.Handle(t.Context(), []byte(callBody))) }()
	<-started
	bridge.Close()
	bridge.Close()
	if got := <-late; got != "" {
		t.Errorf("the running call answered %s", got)
	}
	for _, body := range []string{callBody, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`} {
		if got := server.Handle(t.Context(), []byte(body)); got != nil {
			t.Errorf("the closed bridge answered %s", got)
		}
	}
	if _, err := bridge.Catalog(t.Context()); !errors.Is(err, mcp.ErrBridgeClosed) {
		t.Errorf("catalogue: %v", err)
	}
}

func TestTurnBridgeStep(t *testing.T) {
	t.Parallel()
	var steps []int64
	step := int64(3)
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{
		Catalogue: catalogueOf(t, plainTool("files.read")), Step: &step,
		Host: hostFunc(func(_ context.Context, tool string, step *int64) contract.ToolResult {
			steps = append(steps, *step)
			return succeed(mcp.Invocation{Tool: tool}, `1`)
		}),
	})
	defer bridge.Close()
	step = 9 // the caller's own variable
	callTool(t, newServer(t, mcp.ServerOptions{Invoker: bridge}), "files.read", `{}`)
	if diff := cmp.Diff([]int64{3}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestAliasRecordsAreBounded(t *testing.T) {
	t.Parallel()
	bridge := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{
		Catalogue: catalogueOf(t, plainTool("files.read")),
		Host: hostFunc(func(_ context.Context, tool string, _ *int64) contract.ToolResult {
			return succeed(mcp.Invocation{Tool: tool}, `1`)
		}),
	})
	defer bridge.Close()
	server := newServer(t, mcp.ServerOptions{Invoker: bridge})
	for range mcp.MaxAliasRecords + 5 {
		callTool(t, server, "files_read", `{}`)
	}
	if n := len(bridge.Aliases()); n != mcp.MaxAliasRecords {
		t.Errorf("%d records", n)
	}
}

// kernelBridge is a bridge over the world's kernel, outside of any turn.
func kernelBridge(t *testing.T, w *kerneltest.World) *mcp.KernelBridge {
	t.Helper()
	k := w.Kernel(t)
	return mcp.OpenKernelBridge(mcp.KernelBridgeOptions{
		Kernel: k, Context: w.Context(), ExecutionID: "execution-1", Now: w.Clock.Now,
		Tools: func(ctx context.Context, ac contract.AccessContext) (mcp.EffectiveCatalogue, error) {
			return k.Tools(ctx, ac)
		},
	})
}

// TestKernelBridge: outside of a turn there is no budget, and authority is loaded
// anew for every call.
func TestKernelBridge(t *testing.T) {
	t.Parallel()
	w := world()
	bridge := kernelBridge(t, w)
	server := newServer(t, mcp.ServerOptions{Invoker: bridge})
	list := string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	tools, err := w.Kernel(t).Tools(t.Context(), w.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := string(newServer(t, mcp.ServerOptions{Invoker: &fake{catalogue: contract.Catalogue{ExecutionID: "execution-1", CatalogHash: tools.Hash(), Tools: tools.Published()}}}).
		Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("tools/list differs from the kernel's catalogue (-want +got):\n%s", diff)
	}
	for range 2 * envelope.DefaultMaxSteps {
		if got := callTool(t, server, "files_read", `{"path":["Work"]}`); got.Status != "" {
			t.Fatalf("outcome %v", got)
		}
	}
	w.Grants.Set()
	if got := callTool(t, server, "files.read", `{"path":["Work"]}`); got.Code != "tool_unavailable" {
		t.Errorf("without the grant: %v", got)
	}
	if got := bridge.Aliases(); len(got) != 2*envelope.DefaultMaxSteps || got[0].Tool != "files.read" {
		t.Errorf("%d alias records", len(got))
	}
	bridge.Close()
	if got := server.Handle(t.Context(), []byte(callBody)); got != nil {
		t.Errorf("the closed bridge answered %s", got)
	}
	if _, err := bridge.Catalog(t.Context()); !errors.Is(err, mcp.ErrBridgeClosed) {
		t.Errorf("catalogue: %v", err)
	}
}

// TestKernelBridgeTime: a call is judged at its own instant.
func TestKernelBridgeTime(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(kerneltest.MakeGrant("read").Descendants("files", []string{"Work"}, "read").Expires(time.Hour).Obj())
	w.Options.Tools = kerneltest.FilesTools(&kerneltest.Plane{})
	bridge := kernelBridge(t, w)
	defer bridge.Close()
	server := newServer(t, mcp.ServerOptions{Invoker: bridge})
	if got := callTool(t, server, "files.read", `{"path":["Work"]}`); got.Status != "" {
		t.Errorf("before the expiry: %v", got)
	}
	w.Clock.Advance(time.Hour)
	if got := callTool(t, server, "files.read", `{"path":["Work"]}`); got.Status != "denied" {
		t.Errorf("after the expiry: %v", got)
	}
}

// TestKernelBridgeUnavailable: without authority nothing is listed, and a call says why.
func TestKernelBridgeUnavailable(t *testing.T) {
	t.Parallel()
	w := world()
	w.Grants.Err = errBroken
	bridge := kernelBridge(t, w)
	defer bridge.Close()
	server := newServer(t, mcp.ServerOptions{Invoker: bridge})
	got := string(server.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	if diff := cmp.Diff(rpc("1", -32603, "Internal error"), got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	want := callOutcome{Status: "denied", Code: contract.CodeAuthorityUnavailable}
	if diff := cmp.Diff(want, callTool(t, server, "files.read", `{"path":["Work"]}`)); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
}
