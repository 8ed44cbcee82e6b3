package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// FuzzPath: a target is a route only if it is its path, byte for byte; every answer
// is one of the table's, with its headers.
func FuzzPath(f *testing.F) {
	for _, target := range []string{
		"/v1/tools", "/health", "//health", "/v1/tools/", "/v1%2Ftools", "/./v1/tools", "http://x/v1/tools", "*", "/v1/tools?x", "/v1/tools;a", "/V1/tools",
	} {
		f.Add("GET", target)
	}
	paths := []string{"/health", "/openapi.json", "/v1/authorize", "/v1/tools", "/v1/reach", "/v1/tools/namespaces", "/v1/tools/invoke", "/v1/resources/invoke", "/v1/messages", "/v1/turns"}
	api := allow()
	api.tools = func(context.Context, contract.AccessContext) ([]contract.ToolDefinition, error) { return nil, nil }
	api.reach = func(context.Context, contract.AccessContext) (contract.ReachResult, error) {
		return contract.ReachResult{}, nil
	}
	api.namespaces = func(context.Context, contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
		return contract.ToolNamespaceCatalog{}, nil
	}
	h := newHandler(f, httpapi.Options{API: api})
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip()
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Method, r.URL, r.RequestURI = method, u, target
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		g := got{w.Code, w.Header(), w.Body.String()}
		checkHeaders(t, g)
		path := target
		if u.Scheme != "" {
			if _, after, ok := strings.Cut(target, "://"); ok {
				path = "/" + strings.TrimPrefix(after[len(u.Host)+strings.Index(after, u.Host):], "/")
				if u.User != nil || u.Host == "" || strings.Count(after, u.Host) != 1 {
					return
				}
			}
		}
		path, _, _ = strings.Cut(path, "?")
		known := slices.Contains(paths, path)
		if known == (w.Code == http.StatusNotFound) && u.Opaque == "" {
			t.Errorf("%s %q: status %d", method, target, w.Code)
		}
		if !slices.Contains([]int{200, 400, 404, 405}, w.Code) {
			t.Errorf("%s %q: status %d, body %s", method, target, w.Code, g.body)
		}
	})
}

// FuzzBody: a body is executed if and only if the contract takes it, and it is
// executed as the contract reads it.
func FuzzBody(f *testing.F) {
	for _, body := range []string{seedAuthorize, "", "{", "null", `{"resource":{"namespace":"n","path":[],"Path":[]},"action":"a"}`, "\ufeff{}", `{"action":"\ud800"}`} {
		f.Add([]byte(body))
	}
	var executed []contract.CapabilityRequirement
	api := allow()
	inner := api.authorize
	api.authorize = func(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
		executed = append(executed, need)
		return inner(ctx, ac, need)
	}
	h := newHandler(f, httpapi.Options{API: api})
	f.Fuzz(func(t *testing.T, body []byte) {
		executed = nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/authorize", strings.NewReader(string(body)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want, err := contract.Unmarshal[contract.CapabilityRequirement](body)
		if (err == nil) != (w.Code == http.StatusOK) || (err == nil) != (len(executed) == 1) {
			t.Fatalf("status %d, executed %v, contract: %v", w.Code, executed, err)
		}
		if err != nil {
			g := got{w.Code, w.Header(), w.Body.String()}
			d := g.detail(t)
			if w.Code != http.StatusBadRequest || (d.Code == "invalid_json") == json.Valid(body) && d.Code != "invalid_json" || len(g.body) > 16<<10 {
				t.Fatalf("status %d, body %s", w.Code, g.body)
			}
			return
		}
		if mustJSON(t, want) != mustJSON(t, executed[0]) {
			t.Fatalf("executed %v, want %v", executed[0], want)
		}
	})
}
