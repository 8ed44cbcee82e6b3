package plugin

import (
	"strings"
	"testing"
)

// TestAnswers are the questions that change nothing, asked with no right but to look.
func TestAnswers(t *testing.T) {
	for name, args := range map[string][]string{
		"can-i-yes":         {"can-i", "read", "files:Work/atlas/status.md", "--as", "alice-assistant"},
		"can-i-no":          {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant"},
		"can-i-explain":     {"can-i", "read", "files:Work/atlas/status.md", "--as", "alice-assistant", "--purpose", "atlas-planning", "--explain"},
		"can-i-wide":        {"can-i", "read", "files:Work/atlas/status.md", "--as", "researcher", "--explain", "-o", "wide"},
		"can-i-expired":     {"can-i", "read", "files:Work/atlas/status.md", "--as", "alice-assistant", "--at", "2031-01-01T00:00:00Z", "--explain"},
		"can-i-json":        {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "-o", "json"},
		"can-i-quiet":       {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "-q"},
		"can-i-purpose":     {"can-i", "read", "files:Work/salaries.csv", "--as", "alice-assistant", "--purpose", "payroll"},
		"can-i-usage":       {"can-i", "read", "Work/salaries.csv", "--as", "alice-assistant"},
		"reach":             {"reach", "alice-assistant"},
		"reach-nothing":     {"reach", "alice-assistant", "--at", "1999-01-01T00:00:00Z"},
		"tools":             {"tools", "alice-assistant"},
		"tools-yaml":        {"tools", "researcher", "-o", "yaml"},
		"grants":            {"grants", "alice-assistant"},
		"grants-wide":       {"grants", "alice-assistant", "--purpose", "atlas-planning", "-o", "wide"},
		"grants-unknown":    {"grants", "eve"},
		"output-usage":      {"reach", "alice-assistant", "-o", "xml"},
		"derive":            {"derive", "read-atlas", "--to", "researcher", "--capability", "read,stat@files:Work/atlas/**"},
		"derive-wider":      {"derive", "read-atlas", "--to", "researcher", "--capability", "read@files:Work/**"},
		"derive-bounded":    {"derive", "publish-report", "--to", "researcher", "--capability", "create@files:Work/atlas/report.md"},
		"run-dry":           {"run", "--principal", "alice-assistant", "--harness", "claude", "-m", "Hello", "--timeout", "30s", "--dry-run"},
		"run-usage":         {"run", "--principal", "alice-assistant", "--harness", "claude"},
		"escalations-empty": {"escalations"},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, call(t.Context(), server.viewer, args...).text()) })
	}
}

// TestRightsAreTheCallers: the plugin sees no more than its caller may list.
func TestRightsAreTheCallers(t *testing.T) {
	for _, args := range [][]string{
		{"can-i", "read", "files:a", "--as", "alice-assistant"}, {"reach", "alice-assistant"}, {"grants", "alice-assistant"},
		{"escalations"}, {"explain", "turn/x"}, {"approve", "x"}, {"cancel", "x"}, {"logs", "x"},
	} {
		got := call(t.Context(), server.nobody, args...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.errOut, "forbidden") {
			t.Errorf("%v: %s", args, got.text())
		}
	}
	if got := call(t.Context(), server.viewer, "derive", "read-atlas", "--to", "researcher", "--capability", "read@files:Work/atlas/**", "--apply"); got.code != 2 || !strings.Contains(got.errOut, "forbidden") {
		t.Errorf("a viewer created a Grant: %s", got.text())
	}
}

func TestCompletion(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"commands":   {[]string{""}, []string{"can-i", "approve", "doctor", "local"}},
		"principals": {[]string{"reach", ""}, []string{"alice", "alice-assistant", "researcher"}},
		"as":         {[]string{"can-i", "read", "files:a", "--as", ""}, []string{"alice-assistant"}},
		"purposes":   {[]string{"can-i", "read", "files:a", "--as", "alice-assistant", "--purpose", ""}, []string{"atlas-status", "atlas-planning"}},
		"harnesses":  {[]string{"run", "--harness", ""}, []string{"claude"}},
		"grants":     {[]string{"derive", ""}, []string{"read-atlas", "publish-report"}},
		"formats":    {[]string{"reach", "alice", "-o", ""}, []string{"json", "table", "wide", "yaml"}},
	} {
		got := call(t.Context(), server.viewer, append([]string{"__complete"}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains("\n"+got.out, "\n"+want) {
				t.Errorf("%s: %q is not among\n%s", name, want, got.out)
			}
		}
	}
	if got := call(t.Context(), server.nobody, "__complete", "reach", ""); strings.Contains(got.out, "alice") {
		t.Errorf("completion shows what its caller may not list:\n%s", got.out)
	}
}
