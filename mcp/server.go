package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Invoker is all a [Server] does its work with: what may be seen, and one way to
// call it. It decides; the server only translates. Both methods are called
// concurrently.
type Invoker interface {
	// Catalog returns the tools to publish.
	Catalog(ctx context.Context) (contract.Catalogue, error)
	// Invoke runs one call. A refusal is a result, not an error: an error says
	// that there is no answer, [ErrBridgeClosed] that there will never be one.
	Invoke(ctx context.Context, call Invocation) (contract.ToolResult, error)
}

// Invocation is one tools/call on its way to the kernel.
type Invocation struct {
	// CallID is fresh for every call.
	CallID string
	// Tool is the canonical name, or the name as it was sent when that leads to no
	// published tool.
	Tool string
	// Arguments is a JSON object with its exact digits.
	Arguments contract.Object
	// Alias is the name as it was sent, when it was not the canonical one. It is for
	// diagnosis and takes no part in any decision.
	Alias string
}

// ServerInfo names this server to a client.
type ServerInfo struct {
	Name    string
	Version string
}

// ServerOptions configure a [Server]. Only Invoker is required.
type ServerOptions struct {
	Invoker Invoker
	// ServerInfo defaults to the name sharedos and the version of this build.
	ServerInfo ServerInfo
	// Instructions are handed to the client at initialize.
	Instructions string
	// Name is the name that the harness's configuration gives this server, part of
	// the aliases it may send; the default is [DefaultServerName].
	Name string
	// CreateID mints call ids; the default is random. It is called concurrently.
	CreateID func() string
	// Spans measures what a frame costs here.
	Spans SpanSink
	// OnError sees failures that the client is told nothing about. It is called
	// concurrently and must not block.
	OnError func(ctx context.Context, err error)
}

// Server answers JSON-RPC messages as an MCP server. It knows no transport and
// holds no policy. It is safe for concurrent use.
type Server struct {
	opts        ServerOptions
	session     *session // of Handle
	view        atomic.Pointer[view]
	initialized atomic.Bool
}

// ErrNoInvoker says that a server was to be made without an [Invoker].
var ErrNoInvoker = errors.New("an MCP server needs an invoker")

// NewServer returns a server over an invoker, or [ErrNoInvoker].
func NewServer(opts ServerOptions) (*Server, error) {
	if opts.Invoker == nil {
		return nil, ErrNoInvoker
	}
	if opts.ServerInfo.Name == "" {
		opts.ServerInfo.Name = DefaultServerName
	}
	if opts.ServerInfo.Version == "" {
		opts.ServerInfo.Version = buildVersion()
	}
	if opts.Name == "" {
		opts.Name = DefaultServerName
	}
	if opts.CreateID == nil {
		opts.CreateID = rand.Text
	}
	if opts.OnError == nil {
		opts.OnError = func(context.Context, error) {}
	}
	return &Server{opts: opts, session: newSession()}, nil
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Initialized reports whether a client has completed initialize here.
func (s *Server) Initialized() bool { return s.initialized.Load() }

// Handle answers one message, or one batch with an array. It returns nil when
// there is nothing to say: to notifications, and once the context or the bridge has
// ended. The message must not be changed afterwards.
func (s *Server) Handle(ctx context.Context, data []byte) []byte {
	r := s.handle(ctx, s.session, data)
	return r.document()
}

// reply is what came of one document.
type reply struct {
	outcome outcome
	answers [][]byte
	batch   bool
}

// outcome is how a transport has to present a reply.
type outcome int

const (
	// outcomeSilent: nothing to say back.
	outcomeSilent outcome = iota
	outcomeAnswered
	// outcomeUnreadable: the document is no message.
	outcomeUnreadable
	outcomeEmptyBatch
	// outcomeAborted: an answer will never come.
	outcomeAborted
)

// document is the reply as one JSON document, nil if there is none.
func (r *reply) document() []byte {
	if len(r.answers) == 0 {
		return nil
	}
	if !r.batch {
		return r.answers[0]
	}
	return append(append([]byte{'['}, bytes.Join(r.answers, []byte{','})...), ']')
}

func (s *Server) handle(ctx context.Context, sess *session, data []byte) reply {
	if s.opts.Spans == nil {
		return s.answerDocument(ctx, sess, data, nil)
	}
	ctx, span := s.opts.Spans.StartFrame(ctx, len(data))
	var frame Frame
	r := s.answerDocument(ctx, sess, data, &frame)
	for _, answer := range r.answers {
		frame.ResponseBytes += len(answer)
	}
	span.End(frame)
	return r
}

func (s *Server) answerDocument(ctx context.Context, sess *session, data []byte, frame *Frame) reply {
	node, fault := parseDocument(data)
	if fault != nil {
		return reply{outcome: outcomeUnreadable, answers: [][]byte{EncodeError(nil, fault)}}
	}
	if node.Kind == strictjson.Array {
		return s.answerBatch(ctx, sess, node.Children, frame)
	}
	m := classify(&node)
	frame.saw(&m)
	return s.answer(ctx, sess, &m, frame)
}

// answerBatch answers the entries one after the other.
func (s *Server) answerBatch(ctx context.Context, sess *session, entries []strictjson.Node, frame *Frame) reply {
	switch {
	case len(entries) == 0:
		return reply{outcome: outcomeEmptyBatch, answers: [][]byte{EncodeError(nil, errEmptyBatch)}}
	case len(entries) > MaxBatch:
		return reply{outcome: outcomeUnreadable, answers: [][]byte{EncodeError(nil, unreadable("batch_too_large"))}}
	}
	all := reply{batch: true}
	aborted := false
	for i := range entries {
		m := classify(&entries[i])
		frame.saw(&m)
		one := s.answer(ctx, sess, &m, frame)
		aborted = aborted || one.outcome == outcomeAborted
		all.answers = append(all.answers, one.answers...)
	}
	switch {
	case len(all.answers) > 0:
		all.outcome = outcomeAnswered
	case aborted:
		all.outcome = outcomeAborted
	}
	return all
}

// answer answers one message.
func (s *Server) answer(ctx context.Context, sess *session, m *message, frame *Frame) reply {
	switch m.shape {
	case shapeRequest:
	case shapeNotification:
		if m.method == methodCancelled {
			cancelCall(sess, m)
		}
		return reply{}
	case shapeInvalid:
		return reply{outcome: outcomeAnswered, answers: [][]byte{EncodeError(m.id, errInvalid)}}
	default:
		return reply{outcome: outcomeUnreadable, answers: [][]byte{EncodeError(nil, errNotJSONRPC)}}
	}
	result, err := s.dispatch(ctx, sess, m, frame)
	if err == nil {
		return reply{outcome: outcomeAnswered, answers: [][]byte{encodeResult(m.id, result)}}
	}
	var coded *RPCError
	switch {
	case errors.Is(err, errClientCancelled):
		return reply{}
	case errors.Is(err, errCaseVariant):
		return reply{outcome: outcomeUnreadable, answers: [][]byte{EncodeError(nil, unreadable(strictjson.RuleCaseVariant))}}
	case errors.Is(err, ErrBridgeClosed) || ctx.Err() != nil:
		return reply{outcome: outcomeAborted}
	case errors.As(err, &coded):
		return reply{outcome: outcomeAnswered, answers: [][]byte{EncodeError(m.id, coded)}}
	default:
		s.opts.OnError(ctx, fmt.Errorf("answer %s: %w", safeMethod(m.method), err))
		return reply{outcome: outcomeAnswered, answers: [][]byte{EncodeError(m.id, errInternal)}}
	}
}

// cancelCall ends the running call that a notification names. It never answers.
func cancelCall(sess *session, m *message) {
	if m.params.Kind != strictjson.Object || hasCaseVariant(&m.params, isParamKey, paramKeys) {
		return
	}
	if id, ok := m.params.Member("requestId"); ok && usableID(&id) {
		sess.cancel(idKey(&id))
	}
}
