package mcp

import (
	"encoding/json"
	"strconv"

	"github.com/sharedos-dev/operator/kernel/canonical"
)

// The codes of JSON-RPC errors. They are for messages that never reached a tool; a
// refusal by the kernel is a tool result.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// RPCError is the error of a JSON-RPC answer. An [Invoker] may return one to choose
// code, message and data; every other error of an invoker becomes
// [CodeInternalError] without a detail.
type RPCError struct {
	Code    int
	Message string
	// Data is any JSON value, or nil for none. Clients may drop it.
	Data json.RawMessage
}

// Error implements error.
func (e *RPCError) Error() string {
	return "JSON-RPC error " + strconv.Itoa(e.Code) + ": " + e.Message
}

// EncodeError returns the JSON-RPC answer that carries e. The id is the raw id of
// the message, or nil for null. Data that is not JSON is left out.
func EncodeError(id json.RawMessage, e *RPCError) []byte {
	dst := append(appendHead(make([]byte, 0, 128+len(e.Message)+len(e.Data)), id), `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = canonical.AppendString(append(dst, `,"message":`...), e.Message)
	if len(e.Data) > 0 {
		if with, err := appendCompact(append(dst, `,"data":`...), e.Data); err == nil {
			dst = with
		}
	}
	return append(dst, "}}"...)
}

// encodeResult returns the JSON-RPC answer that carries a result.
func encodeResult(id, result []byte) []byte {
	dst := append(appendHead(make([]byte, 0, 48+len(id)+len(result)), id), `,"result":`...)
	return append(append(dst, result...), '}')
}

func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if len(id) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

var (
	errNotJSONRPC    = &RPCError{Code: CodeParseError, Message: "Not a JSON-RPC message"}
	errInvalid       = &RPCError{Code: CodeInvalidRequest, Message: "Invalid request"}
	errEmptyBatch    = &RPCError{Code: CodeInvalidRequest, Message: "Empty batch"}
	errUnknownMethod = &RPCError{Code: CodeMethodNotFound, Message: "Method not found"}
	errNoToolName    = &RPCError{Code: CodeInvalidParams, Message: "A tool name is required"}
	errArguments     = &RPCError{Code: CodeInvalidParams, Message: "The arguments must be an object"}
	errInternal      = &RPCError{Code: CodeInternalError, Message: "Internal error"}
)

// unreadable says which rule of strict JSON a document broke, never what it holds.
func unreadable(rule string) *RPCError {
	return &RPCError{
		Code: CodeParseError, Message: "The body is not strict JSON",
		Data: append(canonical.AppendString([]byte(`{"rule":`), rule), '}'),
	}
}
