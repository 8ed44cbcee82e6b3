package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// LatestProtocolVersion is what a client gets that asks for none, or for one that
// is not in [ProtocolVersions].
const LatestProtocolVersion = "2025-06-18"

// ProtocolVersions returns the supported versions, newest first.
func ProtocolVersions() []string {
	return []string{LatestProtocolVersion, "2025-03-26", "2024-11-05"}
}

// The methods.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodList       = "tools/list"
	methodCall       = "tools/call"

	methodCancelled = "notifications/cancelled"
)

// errCaseVariant says that a protocol object has a key that another parser could
// take for a known one.
var errCaseVariant = errors.New("a key differs from a known one only in case")

// dispatch answers a request.
func (s *Server) dispatch(ctx context.Context, sess *session, m *message, frame *Frame) ([]byte, error) {
	switch m.method {
	case methodInitialize, methodPing, methodList, methodCall:
	default:
		return nil, errUnknownMethod
	}
	if m.params.Kind == strictjson.Object && hasCaseVariant(&m.params, isParamKey, paramKeys) {
		return nil, errCaseVariant
	}
	switch m.method {
	case methodInitialize:
		return s.initialize(m), nil
	case methodPing:
		return []byte("{}"), nil
	case methodList:
		return s.listTools(ctx)
	default:
		return s.callTool(ctx, sess, m, frame)
	}
}

// safeMethod is a method's name for a log: known ones only.
func safeMethod(method string) string {
	switch method {
	case methodInitialize, methodPing, methodList, methodCall:
		return method
	default:
		return "message"
	}
}

func (s *Server) initialize(m *message) []byte {
	version := LatestProtocolVersion
	if asked, ok := m.params.Member("protocolVersion"); ok && asked.Kind == strictjson.String &&
		slices.Contains(ProtocolVersions(), asked.Text) {
		version = asked.Text
	}
	s.initialized.Store(true)
	dst := canonical.AppendString([]byte(`{"protocolVersion":`), version)
	dst = append(dst, `,"capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":`...)
	dst = canonical.AppendString(dst, s.opts.ServerInfo.Name)
	dst = canonical.AppendString(append(dst, `,"version":`...), s.opts.ServerInfo.Version)
	dst = append(dst, '}')
	if s.opts.Instructions != "" {
		dst = canonical.AppendString(append(dst, `,"instructions":`...), s.opts.Instructions)
	}
	return append(dst, '}')
}

// listTools serves the catalogue as the invoker has it now.
func (s *Server) listTools(ctx context.Context) ([]byte, error) {
	v, err := s.refresh(ctx)
	if err != nil {
		return nil, err
	}
	return v.list, nil
}

// refresh asks for the catalogue and keeps its view, unless it is the one there is.
func (s *Server) refresh(ctx context.Context) (v *view, err error) {
	defer contain(&err)
	c, err := s.opts.Invoker.Catalog(ctx)
	if err != nil {
		return nil, fmt.Errorf("resolve catalogue: %w", err)
	}
	if v := s.view.Load(); v != nil && v.hash == c.CatalogHash && v.hash != "" && v.executionID == c.ExecutionID {
		return v, nil
	}
	v, err = newView(c, s.opts.Name)
	if err != nil {
		return nil, err
	}
	s.view.Store(v)
	return v, nil
}

// current is the view that names are resolved in. Without one names stay as they
// are, and the kernel says what is wrong.
func (s *Server) current(ctx context.Context) (*view, error) {
	if v := s.view.Load(); v != nil {
		return v, nil
	}
	v, err := s.refresh(ctx)
	if err == nil {
		return v, nil
	}
	if errors.Is(err, ErrBridgeClosed) || ctx.Err() != nil {
		return nil, err
	}
	s.opts.OnError(ctx, err)
	return nil, nil //nolint:nilnil // no view is a valid state: see above
}

func (s *Server) callTool(ctx context.Context, sess *session, m *message, frame *Frame) ([]byte, error) {
	name, ok := m.params.Member("name")
	if !ok || name.Kind != strictjson.String || name.Text == "" {
		return nil, errNoToolName
	}
	arguments := contract.Object("{}")
	if given, ok := m.params.Member("arguments"); ok && given.Kind != strictjson.Null {
		if given.Kind != strictjson.Object {
			return nil, errArguments
		}
		arguments = given.Raw
	}
	v, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	tool, published := v.resolve(name.Text)
	call := Invocation{CallID: s.opts.CreateID(), Tool: tool, Arguments: arguments}
	if tool != name.Text {
		call.Alias = name.Text
	}
	result, err := s.invoke(ctx, sess, m.idKey, call)
	frame.called(&call, &result)
	if err != nil {
		return nil, err
	}
	return EncodeCallResult(result, published)
}

// invoke runs the call so that its client can cancel it. A cancelled call has no
// answer, whatever came of it.
func (s *Server) invoke(ctx context.Context, sess *session, id string, call Invocation) (contract.ToolResult, error) {
	ctx, running := sess.begin(ctx, id)
	defer sess.end(running)
	result, err := s.contained(ctx, call)
	if errors.Is(context.Cause(ctx), errClientCancelled) {
		return result, errClientCancelled
	}
	if err == nil && result.Tool != call.Tool {
		return result, errors.New("the result belongs to another call")
	}
	return result, err
}

func (s *Server) contained(ctx context.Context, call Invocation) (r contract.ToolResult, err error) {
	defer contain(&err)
	return s.opts.Invoker.Invoke(ctx, call)
}

// PanicError says that an [Invoker] panicked. Its text does not repeat the value.
type PanicError struct{ Value any }

// Error implements error.
func (*PanicError) Error() string { return "the invoker panicked" }

// contain turns a panic into an error.
func contain(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v}
	}
}
