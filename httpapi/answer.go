package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Codes of error bodies, beside the contract's invalid_request.
const (
	codeInvalidJSON          = "invalid_json"
	codeUnauthenticated      = "unauthenticated"
	codePermissionDenied     = "permission_denied"
	codeNotFound             = "not_found"
	codeMethodNotAllowed     = "method_not_allowed"
	codePayloadTooLarge      = "payload_too_large"
	codeInvalidAccessContext = "invalid_access_context"
	codeInternalError        = "internal_error"
)

// failure is an answer that is not 2xx.
type failure struct {
	status  int
	code    string
	message string
	// cause is what the caller must not know.
	cause error
}

// errorBody is the body of every answer that is not 2xx.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"requestId"`
}

// failureOf turns an error of the resolver or the API into what may be told.
func failureOf(err error) *failure {
	if denied, ok := errors.AsType[*PermissionError](err); ok {
		return &failure{http.StatusForbidden, codePermissionDenied, either(denied.Message, "this caller may not do that"), err}
	}
	if invalid, ok := errors.AsType[*InvalidRequestError](err); ok {
		return &failure{http.StatusBadRequest, contract.CodeInvalidRequest, either(invalid.Message, "the request is not valid"), invalid.Err}
	}
	if errors.Is(err, ErrUnauthenticated) {
		return &failure{http.StatusUnauthorized, codeUnauthenticated, "the request does not say who is calling in a way this server accepts", err}
	}
	return &failure{http.StatusInternalServerError, codeInternalError, "the server could not complete the request", err}
}

func either(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// maxErrorMessage bounds what of a request's own names comes back in an error, bytes.
const maxErrorMessage = 1024

func bounded(s string) string {
	if len(s) <= maxErrorMessage {
		return s
	}
	cut := maxErrorMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// fail answers a failure, and tells the host what the caller is not told.
func (x *exchange) fail(f *failure) {
	if f.cause != nil {
		x.h.opts.OnError(f.cause, x.r, x.id)
	}
	if f.status == http.StatusUnauthorized {
		x.w.Header().Set("Www-Authenticate", x.h.opts.Challenge)
	}
	// Three strings always encode.
	body, _ := encode(errorBody{errorDetail{f.code, bounded(f.message), x.id}})
	x.write(f.status, body)
}

// answer answers with one JSON document.
func (x *exchange) answer(status int, v any) {
	body, ok := v.(encoded)
	if !ok {
		var err error
		if body, err = encode(v); err != nil {
			x.fail(failureOf(err))
			return
		}
	}
	x.write(status, body)
}

// encoded is a JSON document that is ready to be sent.
type encoded []byte

// encode writes JSON without the escapes that only HTML wants.
func encode(v any) (encoded, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Header fields and values that are the same on every answer, in the form net/http
// stores them in.
const (
	headerRequestID    = "X-Request-Id"
	headerContentType  = "Content-Type"
	headerCacheControl = "Cache-Control"
)

var (
	valueJSON    = []string{"application/json"}
	valueNoStore = []string{"no-store"}
)

func (x *exchange) write(status int, body []byte) {
	header := x.w.Header()
	header[headerContentType] = valueJSON
	header[headerCacheControl] = valueNoStore
	header[headerRequestID] = []string{x.id}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	if x.h.opts.WriteTimeout > 0 {
		// The limit counts from here: what came before was work, not a slow client.
		_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.h.opts.WriteTimeout))
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that is gone needs no answer
}

// maxRequestID is the longest request id that is taken over, the contract's limit of
// an identifier.
const maxRequestID = contract.MaxIdentifier

// requestID is the caller's own, if it is one of 1 to 256 visible ASCII characters,
// else a fresh one.
func (h *handler) requestID(r *http.Request) string {
	values := r.Header[headerRequestID]
	if len(values) == 1 && visible(values[0]) {
		return values[0]
	}
	return h.opts.NewRequestID()
}

func visible(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
