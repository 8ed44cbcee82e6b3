package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/observe/tracing"
)

var turn = tracing.Turn{World: "w", Name: "t", ExecutionID: "e1", TraceID: "6f1c9d0e-53a6-4b2f-9c41-0a2b3c4d5e6f"}

func start(t *testing.T) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracer, err := tracing.New(t.Context(), "v1", sdktrace.WithSyncer(exporter))
	if err != nil {
		t.Fatal(err)
	}
	return tracer, exporter
}

func find(t *testing.T, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q in %d", name, len(spans))
	return tracetest.SpanStub{}
}

// A turn's span is told last, by whichever manager ends it; its calls name it as
// their parent all the same.
func TestOneTraceForATurn(t *testing.T) {
	tracer, exporter := start(t)
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	defer server.Close()

	ctx, end := tracer.Start(tracer.Within(t.Context(), turn), kernel.Span{Name: "invoke", Tool: "files.read", TraceID: turn.TraceID})
	get(t, ctx, tracer.Transport(http.DefaultTransport), server.URL)
	end(contract.StatusDenied, "no_matching_grant")

	another, second := start(t) // the manager that took over
	from := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	another.Ended(t.Context(), turn, from, from.Add(time.Minute), contract.StatusSucceeded, "")

	root, call, upstream := find(t, second.GetSpans(), "turn"), find(t, exporter.GetSpans(), "kernel.invoke"), find(t, exporter.GetSpans(), "upstream GET")
	want := trace.TraceID{0x6f, 0x1c, 0x9d, 0x0e, 0x53, 0xa6, 0x4b, 0x2f, 0x9c, 0x41, 0x0a, 0x2b, 0x3c, 0x4d, 0x5e, 0x6f}
	for _, s := range []tracetest.SpanStub{root, call, upstream} {
		if s.SpanContext.TraceID() != want {
			t.Errorf("%s is in trace %s", s.Name, s.SpanContext.TraceID())
		}
	}
	if call.Parent.SpanID() != root.SpanContext.SpanID() || upstream.Parent.SpanID() != call.SpanContext.SpanID() || root.Parent.IsValid() {
		t.Errorf("parents: call %s, upstream %s, root %s", call.Parent.SpanID(), upstream.Parent.SpanID(), root.Parent.SpanID())
	}
	if root.EndTime.Sub(root.StartTime) != time.Minute {
		t.Errorf("the turn took %s", root.EndTime.Sub(root.StartTime))
	}
	if call.Status.Code == codes.Error {
		t.Error("a refusal is told as an error")
	}
	if header := seen.Get("Traceparent"); !strings.Contains(header, upstream.SpanContext.SpanID().String()) {
		t.Errorf("the provider was told %q", header)
	}
}

func get(t *testing.T, ctx context.Context, transport http.RoundTripper, url string) { //nolint:revive // t comes first in this package
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("Traceparent") != "" {
		t.Error("the caller's request was changed")
	}
}

func TestACallOfAStrangerIsASpan(t *testing.T) {
	tracer, exporter := start(t)
	_, end := tracer.Upstream(tracer.Within(t.Context(), turn), "mcp.example")
	end(errSecret)
	s := find(t, exporter.GetSpans(), "upstream call")
	if s.Status.Code != codes.Error || s.Status.Description != "" || len(s.Events) != 0 || s.SpanContext.TraceID() != tracing.TraceID(turn.TraceID) {
		t.Errorf("told %+v in %s", s.Status, s.SpanContext.TraceID())
	}
}

type broken struct{}

var errSecret = errors.New("dial https://user:secret@host")

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errSecret }

func TestAnErrorsTextStaysOut(t *testing.T) {
	tracer, exporter := start(t)
	r := httptest.NewRequest(http.MethodGet, "http://host/", nil)
	response, err := tracer.Transport(broken{}).RoundTrip(r) //nolint:bodyclose // there is none
	if !errors.Is(err, errSecret) || response != nil {
		t.Errorf("error %v", err)
	}
	s := find(t, exporter.GetSpans(), "upstream GET")
	if s.Status.Code != codes.Error || strings.Contains(s.Status.Description, "secret") || len(s.Events) != 0 {
		t.Errorf("told %+v with %d events", s.Status, len(s.Events))
	}
}

func TestTraceIDs(t *testing.T) {
	t.Parallel()
	seen := map[trace.TraceID]string{}
	for _, id := range []string{"trace-1", "trace-2", "", "00000000-0000-0000-0000-000000000000", "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("é", 256)} {
		got := tracing.TraceID(id)
		if !got.IsValid() || got != tracing.TraceID(id) {
			t.Errorf("%q becomes %s", id, got)
		}
		if other, dup := seen[got]; dup {
			t.Errorf("%q and %q share a trace", id, other)
		}
		seen[got] = id
	}
	if got := tracing.TraceID("4bf92f3577b34da6a3ce929d0e0e4736").String(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("a trace id in hex becomes %s", got)
	}
}

func TestWorkOutsideATurnHasTheContextsTrace(t *testing.T) {
	tracer, exporter := start(t)
	_, end := tracer.Start(t.Context(), kernel.Span{Name: "load", TraceID: "trace-1"})
	end(contract.StatusFailed, "authority_unavailable")
	s := find(t, exporter.GetSpans(), "kernel.load")
	if s.SpanContext.TraceID() != tracing.TraceID("trace-1") || s.Status.Code != codes.Error || s.Status.Description != "authority_unavailable" {
		t.Errorf("trace %s, status %+v", s.SpanContext.TraceID(), s.Status)
	}
}

func TestNoEndpointNoTracer(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	tracer, err := tracing.FromEnvironment(t.Context(), "v1")
	if err != nil || tracer != nil {
		t.Fatalf("tracer %v, %v", tracer, err)
	}
	// Nothing is a tracer too.
	ctx, end := tracer.Start(tracer.Within(t.Context(), turn), kernel.Span{Name: "invoke"})
	end(contract.StatusSucceeded, "")
	tracer.Ended(ctx, turn, time.Time{}, time.Time{}, contract.StatusSucceeded, "")
	if tracer.Transport(http.DefaultTransport) != http.DefaultTransport || tracer.Close(ctx) != nil {
		t.Error("no tracer is in the way")
	}
}

func TestSpansReachACollector(t *testing.T) {
	got := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := tracing.FromEnvironment(t.Context(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	tracer.Ended(t.Context(), turn, time.Unix(1, 0), time.Unix(2, 0), contract.StatusSucceeded, "")
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if path := <-got; path != "/v1/traces" {
		t.Errorf("sent to %s", path)
	}
}
