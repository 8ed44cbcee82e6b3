package httpapi

import (
	"fmt"
	"net/http"
)

// NewHandler returns the API as a handler for a listener of the caller's own. It
// takes whole paths: nothing may clean, strip or redirect them before it.
func NewHandler(opts Options) (http.Handler, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("serve the HTTP API: %w", err)
	}
	return &handler{opts: opts}, nil
}

type handler struct{ opts Options }

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNotFound)
}
