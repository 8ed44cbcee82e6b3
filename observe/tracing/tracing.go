package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Tracer makes the spans. It implements [kernel.Observer] and is safe for
// concurrent use. A nil Tracer makes none.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Turn names the turn that a piece of work belongs to.
type Turn struct {
	World, Name, ExecutionID, TraceID string
}

// FromEnvironment returns the tracer that the OTEL_* variables describe, and nil
// when they name no endpoint or switch it off.
func FromEnvironment(ctx context.Context, version string) (*Tracer, error) {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" ||
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, nil //nolint:nilnil // no tracing is an answer
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the trace exporter: %w", err)
	}
	return New(ctx, version, sdktrace.WithBatcher(exporter))
}

// New returns a tracer with a span processor of the caller's.
func New(ctx context.Context, version string, processor sdktrace.TracerProviderOption) (*Tracer, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "sharedos-manager"), attribute.String("service.version", version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe the traced process: %w", err)
	}
	provider := sdktrace.NewTracerProvider(processor, sdktrace.WithResource(about), sdktrace.WithIDGenerator(generator{}))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/sharedos-dev/operator")}, nil
}

// Close sends what is left, for at most as long as ctx lasts.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Within makes the turn's span the parent of what is done under the context.
func (t *Tracer) Within(ctx context.Context, turn Turn) context.Context {
	if t == nil {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: TraceID(turn.TraceID), SpanID: turnSpanID(turn.World, turn.ExecutionID), TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}

// Start implements [kernel.Observer].
func (t *Tracer) Start(ctx context.Context, span kernel.Span) (context.Context, func(contract.Status, string)) {
	if t == nil {
		return ctx, func(contract.Status, string) {}
	}
	making := ctx
	if !trace.SpanContextFromContext(ctx).IsValid() {
		making = context.WithValue(ctx, fixedKey{}, fixed{TraceID(span.TraceID), newSpanID()})
	}
	attributes := []attribute.KeyValue{attribute.String("sharedos.trace_id", span.TraceID)}
	name := "kernel." + span.Name
	if span.Tool != "" {
		attributes = append(attributes, attribute.String("sharedos.tool", span.Tool))
	}
	_, s := t.tracer.Start(making, name, trace.WithAttributes(attributes...))
	return trace.ContextWithSpan(ctx, s), func(status contract.Status, code string) {
		s.SetAttributes(attribute.String("sharedos.status", string(status)))
		if code != "" {
			s.SetAttributes(attribute.String("sharedos.code", code))
		}
		if status == contract.StatusFailed { // a refusal is an answer, not an error
			s.SetStatus(codes.Error, code)
		}
		s.End()
	}
}

// Ended tells the span of a turn that has ended, from its creation to its end.
func (t *Tracer) Ended(ctx context.Context, turn Turn, from, to time.Time, outcome contract.Status, code string) {
	if t == nil {
		return
	}
	ctx = context.WithValue(ctx, fixedKey{}, fixed{TraceID(turn.TraceID), turnSpanID(turn.World, turn.ExecutionID)})
	_, s := t.tracer.Start(ctx, "turn", trace.WithNewRoot(), trace.WithTimestamp(from), trace.WithAttributes(
		attribute.String("k8s.namespace.name", turn.World), attribute.String("sharedos.turn", turn.Name),
		attribute.String("sharedos.execution_id", turn.ExecutionID), attribute.String("sharedos.trace_id", turn.TraceID),
		attribute.String("sharedos.status", string(outcome)),
	))
	if code != "" {
		s.SetAttributes(attribute.String("sharedos.code", code))
	}
	if outcome == contract.StatusFailed {
		s.SetStatus(codes.Error, code)
	}
	s.End(trace.WithTimestamp(to))
}
