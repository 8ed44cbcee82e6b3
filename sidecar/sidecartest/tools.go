package sidecartest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Tools are files.read, which reads, and notes.append, which does not.
func Tools() []contract.PublishedTool {
	yes, no := true, false
	path := contract.Object(`{"type":"object","properties":{"path":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`)
	return []contract.PublishedTool{
		{
			Name: "files.read", Description: "Reads a file.", InputSchema: path,
			OutputSchema: contract.Object(`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`),
			Annotations:  &contract.PublishedAnnotations{ReadOnlyHint: &yes},
			Metadata:     &contract.PublishedMetadata{Namespace: "files", Source: "files-provider"},
		},
		{
			Name: "notes.append", Description: "Appends to the notes.", InputSchema: contract.Object(`{"type":"object"}`),
			Annotations: &contract.PublishedAnnotations{ReadOnlyHint: &no},
		},
	}
}

// Granted is the one file that [Invoke] lets anyone read.
func Granted() []string { return []string{"Work", "atlas", "status.md"} }

// Content of the granted file.
const Content = "Atlas ships on Friday.\n"

// Invoke lets the granted file be read and refuses everything else, as a kernel
// would.
func Invoke(_ *http.Request, call bridge.InvokeRequest) (contract.ToolResult, *bridge.Error) {
	result := contract.ToolResult{CallID: call.CallID, Tool: call.Tool, CompletedAt: contract.At(time.Now())}
	var arguments struct {
		Path []string `json:"path"`
	}
	_ = json.Unmarshal(call.Arguments, &arguments) // then there is no path
	switch {
	case call.Tool == "files.read" && slices.Equal(arguments.Path, Granted()):
		result.Status = contract.StatusSucceeded
		result.Output = contract.Value(`{"content":` + quote(Content) + `}`)
	case call.Tool == "notes.append":
		result.Status, result.Output = contract.StatusSucceeded, contract.Value(`"done"`)
	case call.Tool == "files.read":
		result.Status = contract.StatusDenied
		result.Error = &contract.ProtocolError{Code: "no_matching_grant", Message: "No grant allows this."}
	default:
		result.Status = contract.StatusDenied
		result.Error = &contract.ProtocolError{Code: "tool_unavailable", Message: "The tool is not available."}
	}
	return result, nil
}

func quote(s string) string {
	raw, _ := json.Marshal(s) // a string is always JSON
	return string(raw)
}
