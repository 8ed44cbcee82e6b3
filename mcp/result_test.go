package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

func TestEncodeCallResult(t *testing.T) {
	t.Parallel()
	structured, plain := searchTool(), plainTool("files.read")
	call := mcp.Invocation{CallID: "c", Tool: "files.search"}
	brokered := func(output string) contract.ToolResult {
		r := succeed(call, output)
		r.Metadata = contract.Object(`{"sharedos/content":"mcp"}`)
		return r
	}
	otherMeta := succeed(call, `{"content":[{"type":"text","text":"x"}]}`)
	otherMeta.Metadata = contract.Object(`{"sharedos/content":"html"}`)
	retryable := refuse(call, contract.StatusFailed, "tool_execution_failed", `It "broke" <here>`, new(true))
	retryable.Error.Details = contract.Object(`{"hidden":true}`)
	tests := map[string]struct {
		result contract.ToolResult
		tool   *contract.PublishedTool
		want   string
	}{
		"string":             {succeed(call, `"plain \u0061 \"q\""`), &structured, `{"content":[{"type":"text","text":"plain \u0061 \"q\""}],"isError":false}`},
		"number":             {succeed(call, `9007199254740993123`), &structured, `{"content":[{"type":"text","text":"9007199254740993123"}],"isError":false}`},
		"null":               {succeed(call, `null`), &structured, `{"content":[{"type":"text","text":"null"}],"isError":false}`},
		"list":               {succeed(call, `[ 1 ]`), &structured, `{"content":[{"type":"text","text":"[1]"}],"isError":false}`},
		"object":             {succeed(call, `{ "n": 1.0 }`), &structured, `{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0},"isError":false}`},
		"object, no schema":  {succeed(call, `{"n":1}`), &plain, `{"content":[{"type":"text","text":"{\"n\":1}"}],"isError":false}`},
		"object, not listed": {succeed(call, `{"n":1}`), nil, `{"content":[{"type":"text","text":"{\"n\":1}"}],"isError":false}`},
		"denied": {
			refuse(call, contract.StatusDenied, "no_matching_grant", "No.", new(false)), &structured,
			`{"content":[{"type":"text","text":"{\"status\":\"denied\",\"code\":\"no_matching_grant\",\"message\":\"No.\",\"retryable\":false}"}],"isError":true,"_meta":{"sharedos/status":"denied","sharedos/code":"no_matching_grant"}}`,
		},
		"failed": {
			retryable, &structured,
			`{"content":[{"type":"text","text":"{\"status\":\"failed\",\"code\":\"tool_execution_failed\",\"message\":\"It \\\"broke\\\" <here>\",\"retryable\":true}"}],"isError":true,"_meta":{"sharedos/status":"failed","sharedos/code":"tool_execution_failed"}}`,
		},
		"brokered blocks": {
			brokered(`{"content":[{"type":"text","text":"t"},{"type":"image", "data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"x:y","text":"z"}},{"type":"resource_link","uri":"x:y","name":"n"}]}`), &structured,
			`{"content":[{"type":"text","text":"t"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"x:y","text":"z"}},{"type":"resource_link","uri":"x:y","name":"n"}],"isError":false}`,
		},
		"brokered, unknown block": {brokered(`{"content":[{"type":"script"}]}`), &plain, `{"content":[{"type":"text","text":"{\"content\":[{\"type\":\"script\"}]}"}],"isError":false}`},
		"brokered, more members":  {brokered(`{"content":[],"x":1}`), &plain, `{"content":[{"type":"text","text":"{\"content\":[],\"x\":1}"}],"isError":false}`},
		"brokered text":           {brokered(`"t"`), &plain, `{"content":[{"type":"text","text":"t"}],"isError":false}`},
		"content of no broker":    {succeed(call, `{"content":[{"type":"image"}]}`), &plain, `{"content":[{"type":"text","text":"{\"content\":[{\"type\":\"image\"}]}"}],"isError":false}`},
		"content of another kind": {otherMeta, &plain, `{"content":[{"type":"text","text":"{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"}],"isError":false}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mcp.EncodeCallResult(tt.result, tt.tool)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if !json.Valid(got) {
				t.Error("not JSON")
			}
		})
	}
}

// TestCatalogueVectors: what is listed is the published form, and the hash of the
// shared vectors is the one tools/list names.
func TestCatalogueVectors(t *testing.T) {
	t.Parallel()
	cases := vector[[]struct {
		Name        string                    `json:"name"`
		Definitions []contract.ToolDefinition `json:"definitions"`
		Published   []contract.PublishedTool  `json:"published"`
		CatalogHash string                    `json:"catalogHash"`
	}](t, "catalog-hash.json")
	if len(cases) < 2 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			f := &fake{catalogue: catalogueOf(t, contract.PublishTools(c.Definitions)...)}
			var list struct {
				Result struct {
					Tools []struct {
						Name         string                         `json:"name"`
						Description  string                         `json:"description"`
						InputSchema  contract.Object                `json:"inputSchema"`
						OutputSchema contract.Object                `json:"outputSchema"`
						Annotations  *contract.PublishedAnnotations `json:"annotations"`
						Meta         map[string]string              `json:"_meta"`
					} `json:"tools"`
					Meta map[string]string `json:"_meta"`
				} `json:"result"`
			}
			raw := newServer(t, mcp.ServerOptions{Invoker: f}).Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if err := json.Unmarshal(raw, &list); err != nil {
				t.Fatal(err)
			}
			if got := list.Result.Meta["sharedos/catalogHash"]; got != c.CatalogHash {
				t.Errorf("hash %s, want %s", got, c.CatalogHash)
			}
			var listed []contract.PublishedTool
			for _, tool := range list.Result.Tools {
				listed = append(listed, contract.PublishedTool{
					Name: tool.Name, Description: tool.Description, InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema,
					Annotations: tool.Annotations,
					Metadata:    &contract.PublishedMetadata{Namespace: tool.Meta["sharedos/namespace"], Source: tool.Meta["sharedos/source"]},
				})
			}
			hash, err := contract.CatalogHash(listed)
			if err != nil || hash != c.CatalogHash {
				t.Errorf("what is listed hashes to %s (%v), want %s", hash, err, c.CatalogHash)
			}
		})
	}
}
