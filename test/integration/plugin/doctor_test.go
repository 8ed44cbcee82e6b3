package plugin

import (
	"encoding/json"
	"testing"
)

// TestDoctor looks at a cluster with the definitions and nothing else: every part that
// is missing must be said, with what to do.
func TestDoctor(t *testing.T) {
	got := call(t.Context(), server.admin, "doctor", "-o", "json")
	var findings []struct{ Check, State, Message, Fix string }
	if err := json.Unmarshal([]byte(got.out), &findings); err != nil {
		t.Fatalf("%v in %s", err, got.text())
	}
	states := map[string]string{}
	for _, f := range findings {
		states[f.Check] = f.State
		if (f.State == "FAULT" || f.State == "warning") && f.Fix == "" {
			t.Errorf("%s has no fix: %s", f.Check, f.Message)
		}
	}
	for check, want := range map[string]string{
		"API server": "ok", "resource definitions": "ok", "manager": "FAULT", "injection webhook": "FAULT", "admission policies": "FAULT",
		"certificates": "FAULT", "kernel service": "FAULT", "your rights: create grants": "ok", "Principal alice": "warning",
		"clock": "FAULT", // the plugin's clock is years ahead here
	} {
		if states[check] != want {
			t.Errorf("%s is %q, want %q", check, states[check], want)
		}
	}
	if got.code != 1 {
		t.Errorf("exit code %d", got.code)
	}
	viewer := call(t.Context(), server.viewer, "doctor", "-o", "json")
	findings = nil
	if err := json.Unmarshal([]byte(viewer.out), &findings); err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == "certificates" && f.State != "unknown" {
			t.Errorf("what a viewer may not see is no fault: %+v", f)
		}
		if f.Check == "your rights: create grants" && f.State != "warning" {
			t.Errorf("a viewer may not create grants: %+v", f)
		}
	}
}
