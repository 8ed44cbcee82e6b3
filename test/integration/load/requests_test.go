//go:build load

package load

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	counted = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	label   = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// requests counts what the API server was asked, by verb and resource.
func requests(t *testing.T) map[string]float64 {
	t.Helper()
	raw, err := env.clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	out := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		parts := counted.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(parts[1], -1) {
			labels[pair[1]] = pair[2]
		}
		n, err := strconv.ParseFloat(parts[2], 64)
		must(t, err)
		what := labels["verb"] + " " + labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		if code := labels["code"]; !strings.HasPrefix(code, "2") {
			what += " " + code
		}
		out[what] += n
	}
	return out
}

// asked says what the API server was asked for one of n since before, the most
// frequent first.
func asked(t *testing.T, before map[string]float64, n int) string {
	t.Helper()
	type count struct {
		what string
		n    float64
	}
	var all []count
	total := 0.0
	for what, now := range requests(t) {
		if each := (now - before[what]) / float64(n); each >= 0.01 {
			all = append(all, count{what, each})
			total += each
		}
	}
	slices.SortFunc(all, func(a, b count) int { return strings.Compare(fmt.Sprintf("%09.2f", b.n), fmt.Sprintf("%09.2f", a.n)) })
	out := fmt.Sprintf("%.1f", total)
	for _, c := range all {
		out += fmt.Sprintf("\n        %5.2f %s", c.n, c.what)
	}
	return out
}
