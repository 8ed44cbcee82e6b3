package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/console/consoletest"
)

// FuzzQuery: whatever is asked, the answer is a page of ours or says what is wrong
// with the question, and nothing of the question becomes markup.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "world=team-atlas&page=2", "state=Running&principal=alice", "purpose=%22%3E%3Cscript%3E", "hours=72&hours=24", "page=-1", "world=%00", "%zz"} {
		f.Add("/turns", q)
		f.Add("/reach", q+"&world=team-atlas&principal=alice-assistant")
		f.Add("/refusals", q)
	}
	f.Add("/turns/%3Cscript%3E/%1b", "")
	h := handler(f, consoletest.World())
	f.Fuzz(func(t *testing.T, path, raw string) {
		target := &url.URL{Path: "/" + strings.TrimLeft(path, "/"), RawQuery: raw}
		r := get(h, "/", func(r *http.Request) { r.URL = target })
		page := r.body
		if r.StatusCode >= 500 {
			t.Errorf("%s answers %d", target, r.StatusCode)
		}
		if r.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s has no policy", target)
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") &&
			(strings.Contains(page, "<script") || strings.ContainsAny(page, "\x00\x1b\u202e") || !utf8.ValidString(page)) {
			t.Errorf("%s: the question is in the page as it came", target)
		}
	})
}
