package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// bodies are one valid body of every route that takes one.
func bodies() map[string]string {
	return map[string]string{
		"POST /v1/authorize": seedAuthorize, "PUT /v1/tools/namespaces": `{"enable":["files"]}`, "POST /v1/tools/invoke": seedCall,
		"POST /v1/resources/invoke": seedOperation, "POST /v1/messages": seedMessage, "POST /v1/turns": seedTurn,
	}
}

// TestHostileBodies: nothing but one strict object of the contract reaches the API.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.Options{API: &stub{}}) // an API that is reached panics: 500
	for route, valid := range bodies() {
		method, path, _ := strings.Cut(route, " ")
		valid = compact(t, valid)
		first, _, _ := strings.Cut(valid[2:], `"`) // the first member's name
		for name, tt := range map[string]struct {
			body, code, message string
		}{
			"empty":               {"", "invalid_json", "not JSON"},
			"white space":         {" \n", "invalid_json", "not JSON"},
			"not JSON":            {"{", "invalid_json", "not JSON"},
			"YAML":                {"action: read", "invalid_json", "not JSON"},
			"single quotes":       {"{'a':1}", "invalid_json", "not JSON"},
			"trailing comma":      {valid[:len(valid)-1] + ",}", "invalid_json", "not JSON"},
			"a comment":           {valid + "//", "invalid_json", "not JSON"},
			"two documents":       {valid + valid, "invalid_json", "not JSON"},
			"a byte order mark":   {"\ufeff" + valid, "invalid_json", "not JSON"},
			"not UTF-8":           {strings.Replace(valid, first, first+"\xff", 1), "invalid_json", "not JSON"},
			"UTF-16":              {"\xff\xfe{\x00}\x00", "invalid_json", "not JSON"},
			"NaN":                 {`{"a":NaN}`, "invalid_json", "not JSON"},
			"duplicate, then bad": {`{"a":1,"a":2,`, "invalid_json", "not JSON"},
			"null":                {"null", "invalid_request", "document: "},
			"a number":            {"1", "invalid_request", "document: "},
			"a string":            {`"x"`, "invalid_request", "document: "},
			"an array":            {"[" + valid + "]", "invalid_request", "document: "},
			"an empty array":      {"[]", "invalid_request", "document: "},
			"an empty object":     {"{}", "invalid_request", ""},
			"unknown field":       {with(valid, `"surprise":1`), "invalid_request", "surprise: "},
			"context":             {with(valid, `"context":{}`), "invalid_request", "context: "},
			"grants":              {with(valid, `"grants":[]`), "invalid_request", "grants: "},
			"tools":               {with(valid, `"tools":[]`), "invalid_request", "tools: "},
			"prototype":           {with(valid, `"__proto__":{"grants":[]}`), "invalid_request", "__proto__: "},
			"duplicate key":       {with(valid, `"`+first+`":1`), "invalid_request", "duplicate"},
			"case variant":        {with(valid, `"`+strings.ToUpper(first)+`":1`), "invalid_request", strings.ToUpper(first) + ": "},
			"case variant alone":  {strings.Replace(valid, `"`+first+`"`, `"`+strings.ToUpper(first[:1])+first[1:]+`"`, 1), "invalid_request", ""},
			"wrong type":          {`{"` + first + `":7}`, "invalid_request", ""},
			"null field":          {`{"` + first + `":null}`, "invalid_request", ""},
			"too deep":            {with(valid, `"x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)), "invalid_request", ""},
			"half a surrogate":    {with(valid, `"\ud800":1`), "invalid_request", ""},
			"huge number":         {with(valid, `"x":1e999999999`), "invalid_request", ""},
		} {
			g := do(t, method, server.URL+path, tt.body, "content-type: application/json")
			if d := g.detail(t); g.status != 400 || d.Code != tt.code || !strings.Contains(d.Message, tt.message) {
				t.Errorf("%s, %s: status %d, body %s", route, name, g.status, g.body)
			}
			checkHeaders(t, g)
		}
	}
}

// TestInvalidFieldsAreNamed: with the rule and, in a list, the place.
func TestInvalidFieldsAreNamed(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.Options{API: &stub{}})
	for body, want := range map[string]string{
		`{"resource":{"namespace":"files","path":["Work",".."]},"action":"read"}`:                     "resource.path[1]: must not be . or .. (pattern)",
		`{"resource":{"namespace":"files","path":"Work"},"action":"read"}`:                            "resource.path: must be an array (type)",
		`{"resource":{"namespace":"files"},"action":"read"}`:                                          "resource.path: ",
		`{"resource":{"namespace":"files","path":[]},"action":" read"}`:                               "action: must not begin or end with white space (trimmed)",
		`{"resource":{"namespace":"files","path":[],"owner":{"kind":"robot","id":"x"}},"action":"r"}`: "resource.owner: ",
	} {
		g := do(t, "POST", server.URL+"/v1/authorize", body)
		if d := g.detail(t); g.status != 400 || !strings.HasPrefix(d.Message, want) {
			t.Errorf("%s: status %d, body %s", body, g.status, g.body)
		}
	}
	long := `{"` + strings.Repeat("ü", 100_000) + `":1}`
	if g := do(t, "POST", server.URL+"/v1/authorize", long); g.status != 400 || len(g.body) > 2000 {
		t.Errorf("status %d, body of %d bytes", g.status, len(g.body))
	}
}

// TestContentTypeDoesNotMatter: the body is read as JSON whatever it is called.
func TestContentTypeDoesNotMatter(t *testing.T) {
	t.Parallel()
	server := serve(t, httpapi.Options{})
	for _, header := range []string{"accept: */*", "content-type: application/json", "content-type: text/plain", "content-type: application/json; charset=utf-16", "content-type: ;;", "content-encoding: identity"} {
		if g := do(t, "POST", server.URL+"/v1/authorize", seedAuthorize, header); g.status != 200 {
			t.Errorf("%s: status %d, body %s", header, g.status, g.body)
		}
	}
}

// unknownLength hides the length of a body, which is then sent in chunks.
type unknownLength struct{ io.Reader }

// TestBodyLimit: the limit itself passes, one byte more does not, however the body
// is announced.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"default": 0, "small": 1000, "over 64 KiB": 70_000} {
		server := serve(t, httpapi.Options{MaxBodyBytes: limit})
		size := limit
		if size == 0 {
			size = 4 << 20
		}
		for extra, want := range map[int64]int{0: 200, 1: 413} {
			body := authorizeBody + strings.Repeat(" ", int(size+extra)-len(authorizeBody))
			for form, reader := range map[string]io.Reader{"length": strings.NewReader(body), "chunks": unknownLength{strings.NewReader(body)}} {
				g, err := tryReader(t, server.URL+"/v1/authorize", reader)
				if err != nil {
					// The server closes on a client that still writes; then the answer may be lost.
					if want != 413 || size < 1<<20 {
						t.Errorf("%s, %s, %d more: %v", name, form, extra, err)
					}
					continue
				}
				if g.status != want || (want == 413 && g.code(t) != "payload_too_large") {
					t.Errorf("%s, %s, %d more: status %d, body %.200s", name, form, extra, g.status, g.body)
				}
			}
		}
	}
}

func tryReader(tb testing.TB, url string, body io.Reader) (got, error) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, body)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return got{}, err
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	return got{res.StatusCode, res.Header, string(read)}, err
}

// TestGetBodiesAreIgnored: a body that no route wants is nobody's business.
func TestGetBodiesAreIgnored(t *testing.T) {
	t.Parallel()
	api := allow()
	api.tools = func(context.Context, contract.AccessContext) ([]contract.ToolDefinition, error) { return nil, nil }
	server := serve(t, httpapi.Options{API: api})
	if g := do(t, "GET", server.URL+"/v1/tools", "{"); g.status != 200 || g.body != "[]" {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
}
