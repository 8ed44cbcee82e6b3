package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// FormatJSON asks for an answer in JSON.
const FormatJSON = "json"

// WriteJSON writes an answer for programs.
func WriteJSON(w io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// OutputText is a turn's output as it is printed: a text itself, anything else as JSON.
func OutputText(value contract.Value) string {
	if text, ok := JSONString(value); ok {
		return text
	}
	return string(value)
}

// JSONString decodes a JSON string.
func JSONString(value []byte) (string, bool) {
	var text string
	err := json.Unmarshal(value, &text)
	return text, err == nil
}

// PrintOutput ends the output with a line feed. On the way to a terminal or a file it
// is made plain, because an agent wrote it.
func PrintOutput(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, strings.TrimSuffix(plain.Lines(text), "\n"))
	return err
}
