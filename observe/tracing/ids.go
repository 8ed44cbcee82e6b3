package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// TraceID is the OpenTelemetry trace of a contract trace id: a UUID's own sixteen
// bytes, and for every other text the first half of its SHA-256.
func TraceID(id string) trace.TraceID {
	if u, err := uuid.Parse(id); err == nil && u != uuid.Nil {
		return trace.TraceID(u)
	}
	if t, err := trace.TraceIDFromHex(id); err == nil {
		return t
	}
	sum := sha256.Sum256([]byte("trace\x00" + id))
	return trace.TraceID(sum[:16])
}

// turnSpanID is the span of the turn with that execution id. It is known before
// the span is told, which is when the turn has ended.
func turnSpanID(world, executionID string) trace.SpanID {
	sum := sha256.Sum256([]byte("turn\x00" + world + "\x00" + executionID))
	return trace.SpanID(sum[:8])
}

// fixed is the identity that the next span gets.
type fixed struct {
	trace trace.TraceID
	span  trace.SpanID
}

type fixedKey struct{}

// generator makes random ids, except where the context fixes them.
type generator struct{}

// NewIDs implements the SDK's IDGenerator. It is asked for spans without a parent,
// and only those are fixed.
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if f, ok := ctx.Value(fixedKey{}).(fixed); ok {
		return f.trace, f.span
	}
	var t trace.TraceID
	fill(t[:])
	return t, newSpanID()
}

// NewSpanID implements the SDK's IDGenerator.
func (generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

func newSpanID() trace.SpanID {
	var s trace.SpanID
	fill(s[:])
	return s
}

// fill makes random bytes that are not all zero, which would be no id.
func fill(b []byte) {
	_, _ = rand.Read(b) // never fails
	b[0] |= 1
}
