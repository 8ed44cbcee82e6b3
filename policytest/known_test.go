package policytest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/policytest"
)

// TestMisspeltCasesAreFaults: a case that names what is not there proves nothing, and
// says so instead of passing.
func TestMisspeltCasesAreFaults(t *testing.T) {
	const denied = `action: read, resource: "files:Home/x", expect: denied`
	for name, c := range map[string]struct{ text, want string }{
		"an action":            {`action: raed, resource: "files:Home/x", expect: denied`, `action: no Grant and no tool here knows "raed"`},
		"a resource namespace": {`action: read, resource: "file:Work/x", expect: denied`, `resource: no Grant and no tool here knows the namespace "file"`},
		"a Grant":              {`action: read, resource: "files:Work/atlas/x", expect: allowed, grant: read_atlas`, `grant: there is no Grant "read_atlas"`},
		"a reason":             {denied + ", reason: no_such_grant", `reason: no refusal has the reason "no_such_grant"`},
		"the Grant of uses":    {denied + ", uses: {publish_report: 3}", `uses: there is no Grant "publish_report"`},
		"fewer uses than none": {denied + ", uses: {publish-report: -4}", `uses: of the Grant "publish-report" 0 to 3 uses can be spent, not -4`},
		"more uses than are":   {denied + ", uses: {publish-report: 4}", `uses: of the Grant "publish-report" 0 to 3 uses can be spent, not 4`},
		"an unbounded Grant":   {denied + ", uses: {read-atlas: 1}", `uses: the Grant "read-atlas" has no maxUses`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policytest.Load(cases(t, "    - {name: a, principal: alice-assistant, "+c.text+"}\n"), "w", now())
			faults, ok := errors.AsType[manifest.Faults](err)
			if !ok || len(faults) != 1 || !strings.Contains(faults.Error(), `case "a": `+c.want) || faults[0].Line == 0 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestADenialWithoutAQuestion passes only if it is what the case is about.
func TestADenialWithoutAQuestion(t *testing.T) {
	report := run(t, cases(t, `
    - {name: nobody, principal: alice-asistant, action: read, resource: "files:a", expect: denied}
    - {name: meant, principal: eve, action: read, resource: "files:a", expect: denied, reason: principal_not_ready}
    - {name: purpose, principal: alice-assistant, purpose: plannning, action: read, resource: "files:a", expect: denied}
    - {name: an action of a tool that no Grant gives, principal: researcher, action: create, resource: "files:Work/atlas/x", expect: denied}
`), policytest.Options{})
	failed := map[string]string{}
	for _, r := range report.Results {
		if !r.Passed {
			failed[r.Case.Name] = strings.Join(r.Notes, "; ")
		}
	}
	if len(failed) != 2 || !strings.Contains(failed["nobody"], "write reason: principal_not_ready") || !strings.Contains(failed["purpose"], "write reason: purpose_not_allowed") {
		t.Errorf("failed: %v", failed)
	}
}
