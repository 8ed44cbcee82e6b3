package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/observe/metrics"
)

// stepping is a clock that moves by a millisecond each time it is read.
func stepping() func() time.Time {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

func start(t *testing.T) (*metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, stepping(), metrics.Live{
		Sessions: func() int { return 3 }, CertificateExpiry: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Tokens: func() metrics.TokenCache { return metrics.TokenCache{Hits: 7, Misses: 2, Held: 1} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

// same compares the counters of those names with what they should read.
func same(t *testing.T, registry *prometheus.Registry, want string, names ...string) {
	t.Helper()
	lines := []string{}
	for line := range strings.Lines(want) {
		lines = append(lines, strings.TrimSpace(line))
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(strings.Join(lines, "\n")+"\n"), names...); err != nil {
		t.Error(err)
	}
}

func TestAKernelsWorkIsCounted(t *testing.T) {
	m, registry := start(t)
	world := kerneltest.New(kerneltest.Admission(), kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "read").Obj())
	world.Options.Tools = []kernel.Tool{{
		Definition: kerneltest.Definition("read", contract.ClassRead),
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: "read"}, err
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`1`)}, nil
		},
	}}
	world.Options.Audit, world.Options.Observer = m.Sink(world.Options.Audit), m
	turn := world.Turn(t)
	for _, c := range []struct{ tool, path string }{{"files.read", `["Work"]`}, {"files.read", `["Home"]`}, {"made.up-by-the-caller", `[]`}} {
		turn.Invoke(t.Context(), contract.ToolCall{
			ID: "c" + c.path, Tool: c.tool, Arguments: contract.Object(`{"path":` + c.path + `}`),
			TraceID: world.Context().TraceID, RequestedAt: contract.At(time.Unix(0, 0)),
		})
	}
	same(t, registry, `
		# HELP sharedos_tool_calls_total Tool calls by how they ended.
		# TYPE sharedos_tool_calls_total counter
		sharedos_tool_calls_total{status="denied",tool_namespace="files",world="`+kerneltest.NamespaceID+`"} 1
		sharedos_tool_calls_total{status="denied",tool_namespace="unknown",world="`+kerneltest.NamespaceID+`"} 1
		sharedos_tool_calls_total{status="succeeded",tool_namespace="files",world="`+kerneltest.NamespaceID+`"} 1
	`, "sharedos_tool_calls_total")
	if got := testutil.CollectAndCount(registry, "sharedos_tool_call_duration_seconds"); got != 3 {
		t.Errorf("%d series of call durations", got)
	}
	if got := testutil.CollectAndCount(registry, "sharedos_decisions_total"); got < 2 {
		t.Errorf("%d series of decisions", got)
	}
	same(t, registry, `
		# HELP sharedos_sessions Turns that this manager runs now.
		# TYPE sharedos_sessions gauge
		sharedos_sessions 3
		# HELP sharedos_certificate_expiry_timestamp_seconds When the serving certificate ends, Unix time; 0 while there is none.
		# TYPE sharedos_certificate_expiry_timestamp_seconds gauge
		sharedos_certificate_expiry_timestamp_seconds 1.8e+09
		# HELP sharedos_token_cache_entries Reviews of tokens that are remembered now.
		# TYPE sharedos_token_cache_entries gauge
		sharedos_token_cache_entries 1
		# HELP sharedos_token_cache_lookups_total Tokens of the HTTP API's callers: a hit had been reviewed a moment before, a miss had not.
		# TYPE sharedos_token_cache_lookups_total counter
		sharedos_token_cache_lookups_total{result="hit"} 7
		sharedos_token_cache_lookups_total{result="miss"} 2
	`, "sharedos_sessions", "sharedos_certificate_expiry_timestamp_seconds", "sharedos_token_cache_entries", "sharedos_token_cache_lookups_total")
}

func TestEveryEventCounts(t *testing.T) {
	m, registry := start(t)
	sink := m.Sink(&audit.Memory{})
	for _, e := range []audit.Event{
		{Type: audit.AuthorizationChecked, Outcome: audit.Denied, Reason: "authority_unavailable", FailClosed: true},
		{Type: audit.ResourceInvoked, Outcome: audit.Succeeded},
		{Type: audit.MessageSent, Outcome: audit.Failed},
	} {
		e.NamespaceID = "w"
		if err := sink.Defer(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	m.TurnEnded("w", contract.StatusFailed, "deadline_exceeded", 90*time.Second)
	same(t, registry, `
		# HELP sharedos_audit_records_total Audit records kept.
		# TYPE sharedos_audit_records_total counter
		sharedos_audit_records_total{type="authorization.checked"} 1
		sharedos_audit_records_total{type="message.sent"} 1
		sharedos_audit_records_total{type="resource.invoked"} 1
		# HELP sharedos_decisions_total Authorization decisions.
		# TYPE sharedos_decisions_total counter
		sharedos_decisions_total{outcome="denied",reason="authority_unavailable",world="w"} 1
		# HELP sharedos_fail_closed_total Refusals because something could not be established, as opposed to policy.
		# TYPE sharedos_fail_closed_total counter
		sharedos_fail_closed_total{reason="authority_unavailable",world="w"} 1
		# HELP sharedos_messages_total Messages by how their delivery ended.
		# TYPE sharedos_messages_total counter
		sharedos_messages_total{status="failed",world="w"} 1
		# HELP sharedos_resource_operations_total Direct resource operations by how they ended.
		# TYPE sharedos_resource_operations_total counter
		sharedos_resource_operations_total{status="succeeded",world="w"} 1
		# HELP sharedos_turns_total Turns that ended.
		# TYPE sharedos_turns_total counter
		sharedos_turns_total{code="deadline_exceeded",outcome="failed",world="w"} 1
	`, "sharedos_audit_records_total", "sharedos_decisions_total", "sharedos_fail_closed_total",
		"sharedos_messages_total", "sharedos_resource_operations_total", "sharedos_turns_total")
}

var errDisk = errors.New("disk full")

func TestWhatIsNotKeptIsNotCounted(t *testing.T) {
	m, registry := start(t)
	sink := m.Sink(&audit.Memory{Fail: func(audit.Event) error { return errDisk }})
	if err := sink.Record(t.Context(), audit.Event{Type: audit.ToolInvoked}); !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
	same(t, registry, `
		# HELP sharedos_audit_failures_total Audit records that could not be kept. What they allow is refused.
		# TYPE sharedos_audit_failures_total counter
		sharedos_audit_failures_total 1
	`, "sharedos_audit_failures_total", "sharedos_audit_records_total", "sharedos_tool_calls_total")
}

func TestLabelsStayFew(t *testing.T) {
	m, registry := start(t)
	for i := range 10_000 {
		m.TurnEnded("w", contract.StatusFailed, fmt.Sprintf("code_%d", i), time.Second)
	}
	m.TurnEnded("w", contract.StatusFailed, "code_0", time.Second)
	if got := testutil.CollectAndCount(registry, "sharedos_turns_total"); got != 129 {
		t.Errorf("%d series of 10,000 codes, want 128 and the rest", got)
	}
}

func TestANameIsRegisteredOnce(t *testing.T) {
	_, registry := start(t)
	if _, err := metrics.New(registry, time.Now, metrics.Live{}); err == nil {
		t.Error("registered twice")
	}
}

func BenchmarkObservedCall(b *testing.B) {
	m, err := metrics.New(prometheus.NewRegistry(), time.Now, metrics.Live{})
	if err != nil {
		b.Fatal(err)
	}
	sink := m.Sink(&audit.Memory{})
	e := audit.Event{Type: audit.ToolInvoked, Outcome: audit.Succeeded, NamespaceID: "w", Tool: "files.read"}
	b.ReportAllocs()
	for b.Loop() {
		_, end := m.Start(b.Context(), kernel.Span{Name: "invoke", Tool: "files.read"})
		_ = sink.Defer(b.Context(), e)
		end(contract.StatusSucceeded, "")
	}
}
