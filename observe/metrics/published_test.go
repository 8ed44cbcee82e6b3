package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// names are the metrics that exist, with a histogram's series.
func names(t *testing.T) map[string]bool {
	t.Helper()
	_, registry := start(t)
	out := map[string]bool{}
	described := make(chan *prometheus.Desc, 64)
	registry.Describe(described)
	close(described)
	of := regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range described {
		name := of.FindStringSubmatch(d.String())[1]
		out[name] = true
		if strings.HasSuffix(name, "_duration_seconds") {
			for _, series := range []string{"_bucket", "_sum", "_count"} {
				out[name+series] = true
			}
		}
	}
	return out
}

var ours = regexp.MustCompile(`\bsharedos_[a-z_]+`)

func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A panel or an alert on a name that nothing counts would be silent for ever.
func TestWhatIsPublishedAboutMetricsExists(t *testing.T) {
	exist := names(t)
	for _, file := range []string{"charts/sharedos/files/dashboard.json", "charts/sharedos/files/alerts.yaml", "docs/metrics.md"} {
		found := ours.FindAllString(read(t, file), -1)
		if len(found) < 4 {
			t.Errorf("%s names %d metrics", file, len(found))
		}
		for _, name := range found {
			if !exist[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	docs := read(t, "docs/metrics.md")
	for name := range exist {
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count"); !strings.Contains(docs, "`"+base+"`") {
			t.Errorf("docs/metrics.md does not list %s", base)
		}
	}
}

func TestEveryAlertHasARunbook(t *testing.T) {
	rules := read(t, "charts/sharedos/files/alerts.yaml")
	var alerts []string
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		alerts = append(alerts, m[1])
		if !strings.Contains(rules, "/"+m[1]+".md") {
			t.Errorf("%s names no runbook", m[1])
		}
		if page := read(t, "docs", "runbooks", m[1]+".md"); !strings.Contains(page, "## What to do\n\n1. ") {
			t.Errorf("the runbook of %s says nothing to do", m[1])
		}
	}
	pages, err := filepath.Glob("../../docs/runbooks/SharedOS*.md")
	if err != nil || len(alerts) == 0 {
		t.Fatalf("%d alerts, %v", len(alerts), err)
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); !slices.Contains(alerts, name) {
			t.Errorf("%s.md is no alert's", name)
		}
	}
}
