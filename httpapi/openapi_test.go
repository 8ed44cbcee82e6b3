package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TestDocumentIsCurrent: what is checked in is what is served.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	g := do(t, http.MethodGet, serve(t, httpapi.Options{}).URL+"/openapi.json", "")
	if g.status != 200 || g.body != string(want) {
		t.Error("docs/reference/openapi.json is not current: make docs")
	}
	reference, err := os.ReadFile("../docs/reference/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(reference) != httpapi.Reference() {
		t.Error("docs/reference/http-api.md is not current: make docs")
	}
	mounted, err := httpapi.Document("/team")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(mounted, []byte(`"url": "/team"`)) {
		t.Error("a mounted document does not say where")
	}
}

// document is as much of an OpenAPI document as the tests look at.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		RequestBody *struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
		Responses map[string]struct {
			Ref     string `json:"$ref"`
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas   map[string]json.RawMessage
		Responses map[string]json.RawMessage
	}
}

func readDocument(tb testing.TB) (document, *jsonschema.Compiler) {
	tb.Helper()
	raw, err := httpapi.Document("")
	if err != nil {
		tb.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		tb.Fatal(err)
	}
	described, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://sharedos.test/openapi.json", described); err != nil {
		tb.Fatal(err)
	}
	return d, c
}

func compile(tb testing.TB, c *jsonschema.Compiler, pointer ...string) *jsonschema.Schema {
	tb.Helper()
	for i, p := range pointer {
		pointer[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1")
	}
	s, err := c.Compile("https://sharedos.test/openapi.json#/" + strings.Join(pointer, "/"))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func fits(tb testing.TB, s *jsonschema.Schema, body string) error {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		tb.Fatalf("%v in %s", err, body)
	}
	return s.Validate(v)
}

// TestDocumentDescribesTheAnswers: every example of the reference, and what is
// answered to it, is as documented, with its status.
func TestDocumentDescribesTheAnswers(t *testing.T) {
	t.Parallel()
	d, c := readDocument(t)
	opts, _ := seedOptions(t, contract.Agent("bob-assistant"))
	server := serve(t, opts)
	examples := bodies()
	seen := 0
	for path, methods := range d.Paths {
		for method, operation := range methods {
			method = strings.ToUpper(method)
			body := examples[method+" "+path]
			pointer := []string{"paths", path, strings.ToLower(method)}
			if (operation.RequestBody != nil) != (body != "") {
				t.Errorf("%s %s: no example", method, path)
			}
			if body != "" {
				if err := fits(t, compile(t, c, slices.Concat(pointer, []string{"requestBody", "content", "application/json", "schema"})...), body); err != nil {
					t.Errorf("%s %s: example: %v", method, path, err)
				}
			}
			for _, sent := range []string{body, `{"x":1}`, "{"} {
				g := do(t, method, server.URL+path, sent)
				status := fmt.Sprint(g.status)
				response, documented := operation.Responses[status]
				if !documented && path != "/v1/tools/namespaces" { // no store: a 500, which is documented too
					t.Errorf("%s %s: status %s is not documented", method, path, status)
					continue
				}
				at := slices.Concat(pointer, []string{"responses", status, "content", "application/json", "schema"})
				if response.Ref != "" {
					at = append(strings.Split(strings.TrimPrefix(response.Ref, "#/"), "/"), "content", "application/json", "schema")
				}
				if err := fits(t, compile(t, c, at...), g.body); err != nil {
					t.Errorf("%s %s: answer %s: %v", method, path, g.body, err)
				}
				seen++
			}
		}
	}
	if seen != 33 {
		t.Errorf("%d exchanges", seen)
	}
}
