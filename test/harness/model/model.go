// Package model is a language model that follows a script: it asks for one tool call
// after the other and remembers what it was shown of each. It speaks the two APIs
// that the harnesses use.
package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Call is one call the model will ask for. The tool is a canonical name; each API
// finds it among the tools it is offered, by the name the harness gave it.
type Call struct {
	Tool      string
	Arguments string
}

// Shown is what the model was shown of one call.
type Shown struct {
	Text    string
	IsError bool
}

// Model is a scripted model with a listener on loopback.
type Model struct {
	server *httptest.Server
	script []Call

	mu     sync.Mutex
	shown  []Shown
	tools  []string
	faults []string
}

// Start listens. The model must be closed.
func Start(script []Call) *Model {
	m := &Model{script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"input_tokens":1}`)
	})
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"object":"list","data":[],"models":[]}`)
	})
	m.server = httptest.NewServer(mux)
	return m
}

// URL is the root of both APIs.
func (m *Model) URL() string { return m.server.URL }

// Close stops listening.
func (m *Model) Close() { m.server.Close() }

// Shown returns what was shown, in the order of the script.
func (m *Model) Shown() []Shown {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Shown(nil), m.shown...)
}

// Tools returns the names of the boundary's tools as the harness presented them.
func (m *Model) Tools() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.tools...)
}

// Faults returns what the model could not make sense of.
func (m *Model) Faults() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.faults...)
}

// saw records the state of the conversation and returns the next call, if any is left.
func (m *Model) saw(shown []Shown, tools []string) (Call, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(shown) > len(m.shown) {
		m.shown = shown
	}
	if len(tools) > 0 {
		m.tools = tools
	}
	if len(shown) < len(m.script) {
		return m.script[len(shown)], true
	}
	return Call{}, false
}

func (m *Model) fault(w http.ResponseWriter, err error) {
	m.mu.Lock()
	m.faults = append(m.faults, err.Error())
	m.mu.Unlock()
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// events writes server-sent events whose name is their type.
func events(w http.ResponseWriter, list ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range list {
		data, err := json.Marshal(event)
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}

// portable is the part of an alias that names the tool.
func portable(tool string) string { return strings.ReplaceAll(tool, ".", "_") }
