package mcp

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// SpanSink measures frames: from a document's arrival at the server to its answer.
// What the model thinks and what the harness does is outside of it.
type SpanSink interface {
	// StartFrame is called when a document of size bytes arrives. The calls of the
	// frame run in the context it returns.
	StartFrame(ctx context.Context, size int) (context.Context, FrameSpan)
}

// FrameSpan is one frame that is being answered.
type FrameSpan interface {
	End(frame Frame)
}

// Frame describes an answered document. Names and ids only, never arguments or
// outputs.
type Frame struct {
	// Messages is how many messages it held.
	Messages int
	// Method is the method of the last request in it, if it is a known one.
	Method string
	// CallID, Tool, Status and Code are those of the last tools/call in it.
	CallID string
	Tool   string
	Status contract.Status
	Code   string
	// ResponseBytes is the size of the answers.
	ResponseBytes int
}

func (f *Frame) saw(m *message) {
	if f == nil {
		return
	}
	f.Messages++
	if m.shape == shapeRequest {
		f.Method = safeMethod(m.method)
	}
}

func (f *Frame) called(call *Invocation, r *contract.ToolResult) {
	if f == nil {
		return
	}
	f.CallID, f.Tool, f.Status, f.Code = call.CallID, call.Tool, r.Status, ""
	if r.CallID != "" {
		f.CallID = r.CallID
	}
	if r.Error != nil {
		f.Code = r.Error.Code
	}
}
