package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// codexNamespace is how Codex groups the tools of a server called sharedos.
const codexNamespace = "mcp__sharedos"

// responses is the Responses API.
func (m *Model) responses(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
		Tools []struct {
			Type  string `json:"type"`
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.fault(w, fmt.Errorf("read request: %w", err))
		return
	}
	var tools []string
	for _, tool := range in.Tools {
		if strings.TrimSuffix(tool.Name, "__") != codexNamespace {
			continue
		}
		for _, function := range tool.Tools {
			tools = append(tools, tool.Name+" "+function.Name)
		}
	}
	var shown []Shown
	for _, item := range in.Input {
		if item.Type == "function_call_output" {
			shown = append(shown, Shown{Text: textOf(item.Output)})
		}
	}
	item := map[string]any{
		"type": "message", "id": "item_1", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": "Done."}},
	}
	if call, more := m.saw(shown, tools); more {
		item = map[string]any{
			"type": "function_call", "id": fmt.Sprintf("item_%d", len(shown)), "call_id": fmt.Sprintf("call_%d", len(shown)),
			"namespace": codexNamespace, "name": portable(call.Tool), "arguments": call.Arguments,
		}
	}
	events(w,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{
			"id": "resp_1", "status": "completed", "output": []any{item},
			"usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
		}},
	)
}
