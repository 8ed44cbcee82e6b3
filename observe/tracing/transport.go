package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport tells every request through next as a client span. Only a peer of our
// own is told which trace it serves: propagate is false for somebody else's server,
// which then sees no header that it would not see without tracing.
func (t *Tracer) Transport(next http.RoundTripper, propagate bool) http.RoundTripper {
	if t == nil {
		return next
	}
	return &transport{tracer: t.tracer, next: next, propagate: propagate}
}

type transport struct {
	tracer    trace.Tracer
	next      http.RoundTripper
	propagate bool
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), "upstream "+r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname())))
	defer span.End()
	r = r.Clone(ctx)
	if t.propagate {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		span.SetStatus(codes.Error, "no answer") // the error may name addresses
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	return response, nil
}
