package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// EncodeCallResult translates a tool's result to the result of tools/call. A denial
// and a failure are results as well, marked isError, with status and code in _meta.
// The tool is nil when none was published under the name. A result that breaks its
// contract is an error.
func EncodeCallResult(r contract.ToolResult, tool *contract.PublishedTool) (json.RawMessage, error) {
	switch r.Status {
	case contract.StatusSucceeded:
		return encodeSuccess(&r, tool)
	case contract.StatusDenied, contract.StatusFailed:
		return encodeRefusal(&r)
	default:
		return nil, fmt.Errorf("encode result: status %q is none of a tool", r.Status)
	}
}

func encodeSuccess(r *contract.ToolResult, tool *contract.PublishedTool) ([]byte, error) {
	if len(r.Metadata) > 0 && isContent(r.Metadata) {
		if blocks, ok := contentBlocks(r.Output); ok {
			dst, err := appendCompact([]byte(`{"content":`), blocks)
			if err != nil {
				return nil, fmt.Errorf("encode content: %w", err)
			}
			return append(dst, `,"isError":false}`...), nil
		}
	}
	output, err := appendCompact(make([]byte, 0, len(r.Output)), r.Output)
	if err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	dst := append(make([]byte, 0, 2*len(output)+len(output)/8+96), `{"content":[{"type":"text","text":`...)
	if output[0] == '"' {
		dst = append(dst, output...)
	} else {
		dst = canonical.AppendString(dst, string(output))
	}
	dst = append(dst, `}]`...)
	if output[0] == '{' && tool != nil && len(tool.OutputSchema) > 0 {
		dst = append(append(dst, `,"structuredContent":`...), output...)
	}
	return append(dst, `,"isError":false}`...), nil
}

// encodeRefusal puts the whole answer into the text: some harnesses show their
// model nothing else, not even that it is an error.
func encodeRefusal(r *contract.ToolResult) ([]byte, error) {
	if r.Error == nil {
		return nil, errors.New("encode result: no error beside the status " + string(r.Status))
	}
	text := canonical.AppendString([]byte(`{"status":`), string(r.Status))
	text = canonical.AppendString(append(text, `,"code":`...), r.Error.Code)
	text = canonical.AppendString(append(text, `,"message":`...), r.Error.Message)
	if r.Error.Retryable != nil {
		text = strconv.AppendBool(append(text, `,"retryable":`...), *r.Error.Retryable)
	}
	text = append(text, '}')
	dst := canonical.AppendString([]byte(`{"content":[{"type":"text","text":`), string(text))
	dst = canonical.AppendString(append(dst, `}],"isError":true,"_meta":{"`+metaStatus+`":`...), string(r.Status))
	dst = canonical.AppendString(append(dst, `,"`+metaCode+`":`...), r.Error.Code)
	return append(dst, `}}`...), nil
}

// isContent reports whether the result says that its output holds content blocks.
func isContent(metadata contract.Object) bool {
	node, err := strictjson.Parse(metadata)
	if err != nil {
		return false
	}
	kind, ok := node.Member(metaContent)
	return ok && kind.Kind == strictjson.String && kind.Text == "mcp"
}

// contentBlocks returns the blocks of {"content":[...]}, if that is all there is and
// each is an object with a known type.
func contentBlocks(output contract.Value) (json.RawMessage, bool) {
	node, err := strictjson.Parse(output)
	if err != nil || node.Kind != strictjson.Object || len(node.Children) != 1 {
		return nil, false
	}
	blocks, ok := node.Member("content")
	if !ok || blocks.Kind != strictjson.Array {
		return nil, false
	}
	for i := range blocks.Children {
		kind, ok := blocks.Children[i].Member("type")
		if !ok || kind.Kind != strictjson.String {
			return nil, false
		}
		switch kind.Text {
		case "text", "image", "audio", "resource", "resource_link":
		default:
			return nil, false
		}
	}
	return blocks.Raw, true
}
