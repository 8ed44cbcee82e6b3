package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
)

// report is what the program prints.
type report struct {
	CatalogHash string `json:"catalogHash,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	// Token is what the connection's bearer says for itself, without its signature.
	Token *tokenClaims  `json:"token,omitempty"`
	Tools []string      `json:"tools"`
	Calls []callReport  `json:"calls"`
	Probe []probeReport `json:"probe,omitempty"`
	Error string        `json:"error,omitempty"`
	// Padding makes the report as long as the task asks for.
	Padding string `json:"padding,omitempty"`
}

// callReport is one call and its answer. Status is succeeded, denied or failed, or
// error when there was no result; Code says why.
type callReport struct {
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	IsError    bool            `json:"isError"`
	Status     string          `json:"status"`
	Code       string          `json:"code,omitempty"`
	Text       string          `json:"text,omitempty"`
	Structured any             `json:"structured,omitempty"`
}

// probeReport says what came of an attempt to read a file. Its content is never
// repeated.
type probeReport struct {
	Path     string `json:"path"`
	Readable bool   `json:"readable"`
	// Result is the number of bytes read, or the error.
	Result string `json:"result"`
}

func newReport() *report {
	return &report{Tools: []string{}, Calls: []callReport{}}
}

func (r *report) probe(paths []string) {
	for _, path := range paths {
		p := probeReport{Path: path}
		if content, err := os.ReadFile(path); err != nil {
			p.Result = err.Error()
		} else {
			p.Readable, p.Result = true, strconv.Itoa(len(content))+" bytes"
		}
		r.Probe = append(r.Probe, p)
	}
}

func (r *report) print(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
