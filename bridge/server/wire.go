package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// statuses are the HTTP statuses of the protocol's codes.
var statuses = map[string]int{
	bridge.CodeUnauthenticated:   http.StatusUnauthorized,
	bridge.CodePodNotBound:       http.StatusForbidden,
	bridge.CodeTurnNotFound:      http.StatusNotFound,
	bridge.CodeTurnNotReady:      http.StatusConflict,
	bridge.CodeTurnEnded:         http.StatusGone,
	bridge.CodeInvalidRequest:    http.StatusBadRequest,
	bridge.CodeKernelUnavailable: http.StatusServiceUnavailable,
	bridge.CodeInternal:          http.StatusInternalServerError,
}

// refuse writes an error's body. Anything that is not the protocol's own error is
// internal and says no more.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *bridge.Error
	if !errors.As(err, &refusal) {
		s.opts.Log.Error(err, "Bridge request failed", "path", r.URL.Path)
		refusal = &bridge.Error{Code: bridge.CodeInternal, Message: "internal error"}
	}
	s.opts.Log.V(2).Info("Bridge request refused", "path", r.URL.Path, "code", refusal.Code, "reason", refusal.Message)
	writeJSON(w, statuses[refusal.Code], bridge.ErrorBody{Error: *refusal})
}

// writeJSON answers with a JSON body. The connection's failures are the peer's.
func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"code":"internal_error","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// readJSON reads a strict JSON object: bounded, without unknown, duplicate or
// differently cased members.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return invalid("content-type: must be application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return invalid("body: too large")
		}
		return invalid("body: cannot be read")
	}
	if err := strictjson.Unmarshal(raw, into, strictjson.Options{}); err != nil {
		return invalid("body: " + err.Error())
	}
	return nil
}

func invalid(message string) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeInvalidRequest, Message: message}
}

// bearer takes the one bearer token out of the header's values.
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}
