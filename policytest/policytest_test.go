package policytest_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/policytest"
)

const policies = "../examples/policies"

func now() time.Time { return time.Date(2026, 9, 15, 12, 0, 0, 0, time.UTC) }

// cases writes a file of cases beside the example policies.
func cases(tb testing.TB, text string) []string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "more_test.yaml")
	head := "apiVersion: sharedos.dev/v1alpha1\nkind: AuthorizationTest\nmetadata: {name: more}\nspec:\n  cases:\n"
	if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return []string{policies, path}
}

func run(tb testing.TB, paths []string, opts policytest.Options) *policytest.Report {
	tb.Helper()
	plan, err := policytest.Load(paths, "team-atlas", now())
	if err != nil {
		tb.Fatal(err)
	}
	opts.Now = now()
	report, err := plan.Run(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// TestExamplePolicies: the folder that the documents show passes, and every Grant of
// it is exercised.
func TestExamplePolicies(t *testing.T) {
	report := run(t, []string{policies}, policytest.Options{Coverage: true})
	if report.Failed != 0 || len(report.Results) != 14 || len(report.Coverage.Uncovered) != 0 || report.Coverage.Grants != 5 {
		var out bytes.Buffer
		_ = report.WriteTable(&out)
		t.Errorf("%s", out.String())
	}
}

func TestFailuresAreExplained(t *testing.T) {
	report := run(t, cases(t, `
    - {name: wrong verdict, principal: alice-assistant, purpose: atlas-planning, action: read, resource: "files:Work/atlas/status.md", expect: allowed}
    - {name: wrong grant, principal: alice-assistant, action: read, resource: "files:Work/atlas/status.md", expect: allowed, grant: publish-report}
    - {name: wrong reason, principal: alice-assistant, action: read, resource: "files:Work/x", expect: denied, reason: grant_exhausted}
    - {name: wrong tools, principal: researcher, tools: [files.read, files.delete]}
    - {name: wrong reach, principal: researcher, reach: [{place: "files:Work/atlas", actions: [read]}]}
    - {name: nobody, principal: eve, action: read, resource: "files:a", expect: allowed}
    - {name: nobody has tools, principal: eve, tools: []}
    - {name: right, principal: eve, action: read, resource: "files:a", expect: denied, reason: principal_not_ready}
`), policytest.Options{})
	got := map[string][]string{}
	for _, r := range report.Results {
		if !r.Passed {
			got[r.Case.Name] = append(r.Diff, r.Notes...)
		}
	}
	want := map[string][]string{
		"wrong verdict": {"- allowed", "+ denied: no_matching_grant",
			"grant ask-for-a-decision does not: capability", "grant publish-report does not: purpose", "grant read-atlas does not: purpose", "grant run-alice-assistant does not: capability"},
		"wrong grant": {"- allowed by publish-report", "+ allowed by read-atlas",
			"grant ask-for-a-decision does not: capability", "grant publish-report does not: capability", "grant read-atlas allows it", "grant run-alice-assistant does not: capability"},
		"wrong reason": {"- denied: grant_exhausted", "+ denied: no_matching_grant",
			"grant ask-for-a-decision does not: capability", "grant publish-report does not: capability", "grant read-atlas does not: capability", "grant run-alice-assistant does not: capability"},
		"wrong tools":      {"- files.delete", "  files.read"},
		"wrong reach":      {"- files:Work/atlas read", "+ files:Work/atlas/** read"},
		"nobody":           {"- allowed", "+ denied: principal_not_ready", `principal "eve": principal not found`},
		"nobody has tools": {`+ error: principal "eve": principal not found`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	var table, junit bytes.Buffer
	if err := errors.Join(report.WriteTable(&table), report.WriteJUnit(&junit)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAIL    wrong reach", "more_test.yaml:7: wrong verdict", "    + denied: no_matching_grant", "22 cases, 7 failed"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	var parsed struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Line    int    `xml:"line,attr"`
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.Tests != 22 || parsed.Failures != 7 || len(parsed.Suites) != 2 {
		t.Errorf("JUnit: %d tests, %d failures, %d suites", parsed.Tests, parsed.Failures, len(parsed.Suites))
	}
	if c := parsed.Suites[1].Cases[0]; c.Line != 7 || c.Failure == nil || !strings.Contains(c.Failure.Text, "grant read-atlas does not: purpose") {
		t.Errorf("JUnit case: %+v", c)
	}
}

func TestCoverageNamesWhatNoCaseAsks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"principals.yaml", "grants.yaml", "tools.yaml"} {
		data, err := os.ReadFile(filepath.Join(policies, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A case that is denied exercises nothing, and one Grant behind another is exercised.
	given := cases(t, `
    - {name: a, principal: alice-assistant, action: read, resource: "files:Work/atlas/x", expect: allowed}
    - {name: b, principal: researcher, action: list, resource: "files:Work/atlas", expect: denied}
`)
	paths := []string{given[1], dir}
	report := run(t, paths, policytest.Options{Coverage: true})
	got := []string{}
	for _, u := range report.Coverage.Uncovered {
		if u.Line == 0 || filepath.Base(u.File) != "grants.yaml" {
			t.Errorf("%s has no place: %s", u.Name, u.Position)
		}
		got = append(got, u.Name)
	}
	if diff := cmp.Diff([]string{"run-alice-assistant", "publish-report", "ask-for-a-decision", "researcher-reads-atlas"}, got); diff != "" {
		t.Errorf("uncovered (-want +got):\n%s", diff)
	}
}

func TestFaultyCases(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no case":       {"    []\n", ":5: spec.cases: must have at least one case"},
		"no question":   {"    - {name: a, principal: p}\n", ":6: spec.cases[0]: ask exactly one thing"},
		"two questions": {"    - {name: a, principal: p, action: x, resource: 'n:a', tools: []}\n", "ask exactly one thing"},
		"no verdict":    {"    - name: a\n      principal: p\n      action: x\n      resource: n:a\n", "spec.cases[0].expect: must be allowed or denied"},
		"bad verdict":   {"    - name: a\n      principal: p\n      action: x\n      resource: n:a\n      expect: maybe\n", ":10: spec.cases[0].expect: must be"},
		"reason":        {"    - {name: a, principal: p, action: x, resource: 'n:a', expect: allowed, reason: r}\n", "reason: goes with expect: denied"},
		"grant":         {"    - {name: a, principal: p, action: x, resource: 'n:a', expect: denied, grant: r}\n", "grant: goes with expect: allowed"},
		"no colon":      {"    - {name: a, principal: p, action: x, resource: a, expect: denied}\n", "has no colon"},
		"unknown field": {"    - {name: a, principal: p, whom: x}\n", "more_test.yaml:6: spec.cases[0].whom"},
		"no name":       {"    - {principal: p, tools: []}\n", "name"},
		"same name":     {"    - {name: a, principal: p, tools: []}\n    - {name: a, principal: p, tools: []}\n", `:7: spec.cases[1].name: another case is called "a"`},
		"instant":       {"    - {name: a, principal: p, at: yesterday, tools: []}\n", "spec.cases[0].at"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policytest.Load(cases(t, c.text), "w", now())
			faults, ok := errors.AsType[manifest.Faults](err)
			if !ok || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var out bytes.Buffer
			if err := policytest.WriteFaults(&out, faults); err != nil || !strings.Contains(out.String(), `failures="1"`) {
				t.Errorf("%v %s", err, out.String())
			}
		})
	}
}

// TestInconsistentFolders: what the manager would set a condition for fails a pull
// request.
func TestInconsistentFolders(t *testing.T) {
	grant := func(name, extra string) string {
		return "apiVersion: sharedos.dev/v1alpha1\nkind: Grant\nmetadata: {name: " + name + "}\nspec:\n" + extra +
			"  capabilities: [{resource: {namespace: files, path: [Work]}, actions: [read], scope: exact}]\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown issuer": {grant("g", "  issuer: eve\n  subject: alice\n"), `:4: grant "g": spec.issuer of grant "g": principal "eve": principal not found`},
		"no parent":      {grant("g", "  issuer: alice-assistant\n  subject: researcher\n  parentGrant: gone\n"), `there is no grant "gone"`},
		"wider": {grant("g", "  issuer: alice-assistant\n  subject: researcher\n  parentGrant: read-atlas\n  constraints: {purposes: [atlas-status], expiresAt: \"2027-01-01T00:00:00Z\"}\n"),
			"capability_not_within_parent"},
		"bounded parent": {grant("g", "  issuer: alice-assistant\n  subject: researcher\n  parentGrant: publish-report\n"), "bounded_parent_not_delegable"},
		"same address": {"apiVersion: sharedos.dev/v1alpha1\nkind: Principal\nmetadata: {name: twin}\nspec: {address: {kind: human, userId: alice}}\n",
			"another principal has the same address"},
		"unknown authority": {"apiVersion: sharedos.dev/v1alpha1\nkind: Principal\nmetadata: {name: x}\nspec: {address: {kind: agent, agentId: x}, authority: eve}\n",
			"spec.authority of principal"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := policytest.Load([]string{policies, path}, "team-atlas", now()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// BenchmarkThousandCases is what a pull request with 1,000 cases waits for.
func BenchmarkThousandCases(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "    - {name: case-%d, principal: alice-assistant, action: read, resource: \"files:Work/atlas/%d\", expect: allowed, grant: read-atlas}\n", i, i)
	}
	paths := cases(b, text.String())
	for b.Loop() {
		if report := run(b, paths, policytest.Options{}); report.Failed > 0 {
			b.Fatal("a case failed")
		}
	}
}
