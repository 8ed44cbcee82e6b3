package console

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/console/consoletest"
)

var update = flag.Bool("update", false, "write the goldens anew")

func handler(tb testing.TB, world *consoletest.Reader) http.Handler {
	tb.Helper()
	h, err := NewHandler(Options{Reader: world, Clock: consoletest.Now, NewID: func() string { return "id" }})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// get asks for a page as a browser on this machine does.
func get(h http.Handler, path string, change ...func(*http.Request)) answer {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:8090"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{StatusCode: w.Code, Header: w.Result().Header, body: w.Body.String()}
}

// answer is a response that has been read.
type answer struct {
	StatusCode int
	Header     http.Header
	body       string
}

// golden compares a text with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// mainOf is the content of a page without the frame that all of them share, with no
// empty lines.
func mainOf(page string) string {
	_, rest, _ := strings.Cut(page, `tabindex="-1">`)
	content, _, _ := strings.Cut(rest, "</main>")
	var out strings.Builder
	for line := range strings.Lines(content) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(line)
		}
	}
	return out.String()
}
