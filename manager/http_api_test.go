package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyTheProtocolsOwnRequestsAreTheBridges(t *testing.T) {
	t.Parallel()
	by := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("By", name) })
	}
	handler := beside(by("bridges"), by("api"))
	for target, want := range map[string]string{
		"POST /bridge/v1/attach": "bridges", "GET /bridge/v1/session": "bridges",
		"GET /bridge/v1/attach": "api", "GET /bridge/v1/nope": "api", "GET /bridge/v1//attach": "api", "POST /bridge/v1/attach/": "api",
		"GET /bridge/v1/../../v1/tools": "api", "POST /bridge/v1/%61ttach": "api", "GET /v1/tools": "api",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if got := w.Header().Get("By"); got != want {
			t.Errorf("%s is served by %s, want %s", target, got, want)
		}
	}
}
