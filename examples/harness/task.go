package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// task is what a message asks for.
type task struct {
	Calls        []call  `json:"calls"`
	SleepSeconds float64 `json:"sleepSeconds"`
	// PauseSeconds lie between two calls.
	PauseSeconds float64 `json:"pauseSeconds"`
	// IgnoreTerm makes the program outlive SIGTERM, as badly made agents do.
	IgnoreTerm bool `json:"ignoreTerm"`
	ExitCode   int  `json:"exitCode"`
	// AllocateMiB is how much memory the program takes, and keeps, before its calls.
	AllocateMiB int `json:"allocateMiB"`
	// OutputBytes is how long the report is made with padding, if it is shorter.
	OutputBytes int      `json:"outputBytes"`
	Probe       []string `json:"probe"`
}

// call is one tools/call.
type call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// defaultTask goes with config/samples: what its grants allow, what lies outside of
// them, and a tool that they do not give.
func defaultTask() task {
	return task{Calls: []call{
		{"files.list", json.RawMessage(`{"path":["Work","atlas"]}`)},
		{"files.read", json.RawMessage(`{"path":["Work","atlas","status.md"]}`)},
		{"files.read", json.RawMessage(`{"path":["Work","salaries.csv"]}`)},
		{"files.create", json.RawMessage(`{"path":["Work","atlas","note.md"],"content":"Ships today!"}`)},
	}}
}

// readTask reads the message envelope.
func readTask(path string) (task, error) {
	if path == "" {
		return task{}, errors.New(envMessage + " is not set")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return task{}, fmt.Errorf("read message: %w", err)
	}
	var message struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(raw, &message); err != nil {
		return task{}, fmt.Errorf("read message: %w", err)
	}
	return parseTask(message.Payload)
}

// parseTask takes a text, bare or as the text of an object, for a question to
// answer, and any other object for a task. A text may hold a task as well.
func parseTask(payload json.RawMessage) (task, error) {
	text, ok := textOf(payload)
	if !ok {
		return decodeTask(payload)
	}
	if trimmed := bytes.TrimSpace([]byte(text)); len(trimmed) > 0 && trimmed[0] == '{' {
		return decodeTask(trimmed)
	}
	return defaultTask(), nil
}

func textOf(payload json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return text, true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(payload, &object) != nil || object["text"] == nil {
		return "", false
	}
	return text, json.Unmarshal(object["text"], &text) == nil
}

func decodeTask(raw []byte) (task, error) {
	var t task
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return task{}, fmt.Errorf("read task: %w", err)
	}
	if t.ExitCode < 0 || t.ExitCode > 255 || t.SleepSeconds < 0 || t.PauseSeconds < 0 || t.AllocateMiB < 0 || t.OutputBytes < 0 {
		return task{}, errors.New("read task: exitCode must be 0 to 255, sleepSeconds, pauseSeconds, allocateMiB and outputBytes not negative")
	}
	return t, nil
}
