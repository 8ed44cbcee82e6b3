package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport tells every request to a provider of our own as a client span, and the
// provider which trace it serves.
func (t *Tracer) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &transport{tracer: t.tracer, next: next}
}

type transport struct {
	tracer trace.Tracer
	next   http.RoundTripper
}

// Upstream begins the client span of a call to somebody else's server, which is told
// nothing of it.
func (t *Tracer) Upstream(ctx context.Context, server string) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, "upstream call", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("server.address", server)))
	return ctx, func(err error) {
		if err != nil { // its text may name addresses
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), "upstream "+r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname())))
	defer span.End()
	r = r.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
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

// CloseIdleConnections closes those of the transport it goes around.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
