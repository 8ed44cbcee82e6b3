package kerneltest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// UpdateEnv is the environment variable that has [Conform] rewrite its column of
// the document instead of comparing it.
const UpdateEnv = "UPDATE_CONFORMANCE"

// Conform tries every row through the door and checks that the door's column of
// the document is current. The other columns are left to their doors' tests.
func Conform(t *testing.T, door Door, document string) {
	t.Helper()
	column := make(map[string]string)
	for _, row := range Rows() {
		t.Run(row.ID, func(t *testing.T) {
			cell := Try(t, row, door)
			for _, failure := range cell.Failures {
				t.Error(failure)
			}
			if cell.NotApplicable == "" && cell.Attempts == 0 {
				t.Error("nothing was attempted")
			}
			column[row.ID] = cell.text()
		})
	}
	if t.Failed() {
		return
	}
	before, err := os.ReadFile(document)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	cells := parseDocument(string(before))
	for id, text := range column {
		cells[id+"/"+door.Name()] = text
	}
	after := renderDocument(cells)
	if bytes.Equal(before, after) {
		return
	}
	if os.Getenv(UpdateEnv) == "" {
		t.Fatalf("%s is not current; run this test with %s=1", document, UpdateEnv)
	}
	if err := os.WriteFile(document, after, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c Cell) text() string {
	if c.NotApplicable != "" {
		return "n/a"
	}
	return fmt.Sprintf("pass (%d/%d)", c.Attempts, c.Controls)
}

const notJoined = "not joined yet"

// parseDocument returns the cells by row and door. It trusts only the door's names
// in the heading and the row's in the first column.
func parseDocument(text string) map[string]string {
	cells := make(map[string]string)
	var heading []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
			continue
		}
		columns := strings.Split(strings.Trim(line, "|"), "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if heading == nil {
			heading = columns
			continue
		}
		if len(columns) != len(heading) {
			continue
		}
		for i, name := range heading {
			if slices.Contains(Doors(), name) {
				cells[strings.Trim(columns[0], "`")+"/"+name] = columns[i]
			}
		}
	}
	return cells
}

// renderDocument writes the whole document.
func renderDocument(cells map[string]string) []byte {
	var out bytes.Buffer
	out.WriteString("# Conformance: the adversary matrix\n\n")
	out.WriteString("Each row is an attempted violation, made by a scripted adversary in a fixed world through\n")
	out.WriteString("each door to the kernel. `pass (a/c)` means that all of a attempts were refused as they must be,\n")
	out.WriteString("all of c legitimate controls worked, and the record of events and audit was complete.\n")
	out.WriteString("`n/a` means that the door structurally cannot be tried; it is never a pass.\n\n")
	out.WriteString("The tests write this page, each door its own column, and fail when it is not current:\n")
	out.WriteString("`" + UpdateEnv + "=1 go test -p 1 -run Conformance ./...` writes it anew.\n\n")
	out.WriteString("| row | attempted violation | expected | " + strings.Join(Doors(), " | ") + " |\n")
	out.WriteString("|---|---|---|" + strings.Repeat("---|", len(Doors())) + "\n")
	for _, row := range Rows() {
		fmt.Fprintf(&out, "| `%s` | %s | %s |", row.ID, row.Violation, row.Expected)
		for _, door := range Doors() {
			text, known := cells[row.ID+"/"+door]
			if !known {
				text = notJoined
			}
			out.WriteString(" " + text + " |")
		}
		out.WriteString("\n")
	}
	out.WriteString("\n## Why a row does not apply\n\n")
	for _, row := range Rows() {
		for _, door := range Doors() {
			if why := row.NotApplicable[door]; why != "" {
				fmt.Fprintf(&out, "- `%s`, %s: %s\n", row.ID, door, why)
			}
		}
	}
	return out.Bytes()
}

func containsSecret(line []byte) bool { return bytes.Contains(line, []byte(Secret)) }
