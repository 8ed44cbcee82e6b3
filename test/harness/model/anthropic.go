package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// claudePrefix is how Claude Code names the tools of a server called sharedos.
const claudePrefix = "mcp__sharedos__"

// messages is the Messages API.
func (m *Model) messages(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Stream   bool   `json:"stream"`
		Model    string `json:"model"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.fault(w, fmt.Errorf("read request: %w", err))
		return
	}
	var tools []string
	for _, tool := range in.Tools {
		if strings.HasPrefix(tool.Name, claudePrefix) {
			tools = append(tools, tool.Name)
		}
	}
	var shown []Shown
	for _, message := range in.Messages {
		shown = append(shown, results(message.Content)...)
	}
	block := map[string]any{"type": "text", "text": ""}
	delta := map[string]any{"type": "text_delta", "text": "Done."}
	reason := "end_turn"
	if len(tools) > 0 { // otherwise it is a side question of the harness's own
		if call, more := m.saw(shown, tools); more {
			block = map[string]any{
				"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(shown)), "name": claudePrefix + portable(call.Tool), "input": map[string]any{},
			}
			delta = map[string]any{"type": "input_json_delta", "partial_json": call.Arguments}
			reason = "tool_use"
		}
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	if !in.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "model": in.Model, "usage": usage,
			"content": []any{map[string]any{"type": "text", "text": "Done."}}, "stop_reason": "end_turn",
		})
		return
	}
	events(w,
		map[string]any{"type": "message_start", "message": map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "model": in.Model, "content": []any{}, "usage": usage,
		}},
		map[string]any{"type": "content_block_start", "index": 0, "content_block": block},
		map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
		map[string]any{"type": "content_block_stop", "index": 0},
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": reason}, "usage": map[string]any{"output_tokens": 1}},
		map[string]any{"type": "message_stop"},
	)
}

// results are the tool results in a message's content.
func results(content json.RawMessage) []Shown {
	var blocks []struct {
		Type    string          `json:"type"`
		IsError bool            `json:"is_error"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return nil // a plain string
	}
	var shown []Shown
	for _, block := range blocks {
		if block.Type == "tool_result" {
			shown = append(shown, Shown{Text: textOf(block.Content), IsError: block.IsError})
		}
	}
	return shown
}

// textOf is the text of a string or of a list of blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	var all []string
	for _, block := range blocks {
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}
