package pages

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	page := strings.Join([]string{
		"# A page", "", "```", "make demo   # comment", "a \\", "  b", "```", "",
		"```yaml", "kind: Grant", "```", "",
		"<!-- not run: it needs your registry -->", "", "```", "make push", "```", "",
		"<!-- not run: forgotten -->", "Text between.", "```console", "$ kubectl get turns", "NAME", "$ true", "```",
		"```text", "drawing", "```",
	}, "\n")
	got, err := scan("p.md", bufio.NewScanner(strings.NewReader(page)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{File: "p.md", Line: 4, Commands: "make demo   # comment\na \\\n  b\n"},
		{File: "p.md", Line: 16, Commands: "make push\n", NotRun: "it needs your registry"},
		{File: "p.md", Line: 22, Commands: "kubectl get turns\ntrue\n"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for name, bad := range map[string]string{"unknown language": "```shell\nx\n```", "open block": "```\nx\n"} {
		if _, err := scan("p.md", bufio.NewScanner(strings.NewReader(bad))); err == nil || !strings.HasPrefix(err.Error(), "p.md:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
