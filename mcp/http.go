package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Defaults of [HTTPOptions].
const (
	DefaultPath              = "/mcp"
	DefaultHost              = "127.0.0.1"
	DefaultBodyLimit         = 4 << 20
	DefaultReadHeaderTimeout = 10 * time.Second
	DefaultReadTimeout       = 30 * time.Second
	DefaultWriteTimeout      = 30 * time.Second
	DefaultIdleTimeout       = 10 * time.Minute
)

// HTTPOptions configure the Streamable HTTP transport. Only Server is required.
type HTTPOptions struct {
	Server *Server
	// Path is the one route; the default is [DefaultPath].
	Path string
	// Host is the address that [NewHTTPServer] listens on; the default is loopback,
	// which anything else deliberately widens.
	Host string
	// Port is the port that [NewHTTPServer] listens on; 0 leaves the choice to the
	// system.
	Port int
	// Authorize judges the bearer token of every request; present says whether there
	// is one. Without Authorize every request passes: right only on loopback, when
	// nobody but the harness knows the port.
	Authorize func(bearer string, present bool) bool
	// BodyLimit is the largest body, bytes.
	BodyLimit int64
	// ReadHeaderTimeout bounds the arrival of a request's head, ReadTimeout that of
	// its body, WriteTimeout the departure of its answer once there is one, and
	// IdleTimeout the time between two requests. A running call is bounded by none.
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration
	WriteTimeout      time.Duration
	IdleTimeout       time.Duration
	// CreateSessionID mints the id of this bridge's session; the default is random.
	CreateSessionID func() string
}

func (o *HTTPOptions) complete() error {
	if o.Server == nil {
		return ErrNoServer
	}
	setDefault(&o.Path, DefaultPath)
	setDefault(&o.Host, DefaultHost)
	setDefault(&o.BodyLimit, DefaultBodyLimit)
	setDefault(&o.ReadHeaderTimeout, DefaultReadHeaderTimeout)
	setDefault(&o.ReadTimeout, DefaultReadTimeout)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	setDefault(&o.IdleTimeout, DefaultIdleTimeout)
	if o.Path[0] != '/' {
		return fmt.Errorf("path %q does not begin with a slash", o.Path)
	}
	if o.CreateSessionID == nil {
		o.CreateSessionID = rand.Text
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// ErrNoServer says that a transport was to be made without a [Server].
var ErrNoServer = errors.New("a transport needs a server")

// HTTPHandler is the Streamable HTTP transport as an [http.Handler]. It is one
// session and offers no stream of its own. It is safe for concurrent use.
type HTTPHandler struct {
	opts      HTTPOptions
	sessionID string
	session   *session
	// The handler's own life: a client that goes away does not cancel its call, the
	// end of the bridge does.
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelFunc
	// Values of header fields that are the same on every answer.
	sessionHeader []string
}

// NewHTTPHandler returns the transport for a listener of the caller's own.
func NewHTTPHandler(opts HTTPOptions) (*HTTPHandler, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	h := &HTTPHandler{opts: opts, sessionID: opts.CreateSessionID(), session: newSession()}
	h.sessionHeader = []string{h.sessionID}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// SessionID is the value of mcp-session-id.
func (h *HTTPHandler) SessionID() string { return h.sessionID }

// Close shuts the door: running calls are cancelled, and every request from now on
// has its connection closed without an answer.
func (h *HTTPHandler) Close() { h.cancel() }

// Bodies of the answers that are no JSON-RPC.
const (
	bodyUnauthorized     = `{"error":"unauthorized"}`
	bodyUnknownSession   = `{"error":"unknown_session"}`
	bodyMethodNotAllowed = `{"error":"method_not_allowed"}`
	bodyForbiddenOrigin  = `{"error":"forbidden_origin"}`
	bodyUnsupportedMedia = `{"error":"unsupported_media_type"}`
	bodyTooLarge         = `{"error":"payload_too_large"}`
	bodyInternal         = `{"error":"internal_error"}`
)

// The header fields set here, in the form net/http stores them in.
const (
	headerSession      = "Mcp-Session-Id"
	headerContentType  = "Content-Type"
	headerCacheControl = "Cache-Control"
)

// ServeHTTP implements [http.Handler]. The order of its checks is the order of the
// status table.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.contain(w, r)
	if h.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	switch token, present := bearer(r.Header); {
	case r.URL.Path != h.opts.Path:
		h.empty(w, http.StatusNotFound)
	case foreign(r):
		h.refuse(w, http.StatusForbidden, bodyForbiddenOrigin)
	case simpleContentType(r.Header):
		h.refuse(w, http.StatusUnsupportedMediaType, bodyUnsupportedMedia)
	case r.ContentLength > h.opts.BodyLimit:
		w.Header().Set("Connection", "close")
		h.refuse(w, http.StatusRequestEntityTooLarge, bodyTooLarge)
	case h.opts.Authorize != nil && !h.opts.Authorize(token, present):
		w.Header().Set("Www-Authenticate", `Bearer realm="sharedos"`)
		h.refuse(w, http.StatusUnauthorized, bodyUnauthorized)
	case h.otherSession(r):
		h.refuse(w, http.StatusNotFound, bodyUnknownSession)
	case r.Method == http.MethodDelete:
		h.empty(w, http.StatusOK)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST, DELETE")
		h.refuse(w, http.StatusMethodNotAllowed, bodyMethodNotAllowed)
	default:
		h.post(w, r)
	}
}

func (h *HTTPHandler) otherSession(r *http.Request) bool {
	for _, id := range r.Header[headerSession] {
		if id != h.sessionID {
			return true
		}
	}
	return false
}

func (h *HTTPHandler) post(w http.ResponseWriter, r *http.Request) {
	body, err := h.read(w, r)
	if err != nil {
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			h.refuse(w, http.StatusRequestEntityTooLarge, bodyTooLarge)
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			panic(http.ErrAbortHandler)
		}
		body = nil // what did not arrive whole is not JSON
		w.Header().Set("Connection", "close")
	}
	ctx := callContext{Context: h.ctx, values: r.Context()}
	reply := h.opts.Server.handle(ctx, h.session, body) //nolint:contextcheck // it knows the request's values
	if h.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	switch reply.outcome {
	case outcomeAborted:
		panic(http.ErrAbortHandler)
	case outcomeSilent:
		w.Header()[headerSession] = h.sessionHeader
		h.empty(w, http.StatusAccepted)
	case outcomeUnreadable, outcomeEmptyBatch:
		h.answer(w, http.StatusBadRequest, reply.document())
	default:
		if acceptsEvents(r.Header) {
			h.stream(w, reply.answers)
			return
		}
		h.answer(w, http.StatusOK, reply.document())
	}
}

// callContext ends with the bridge and knows the values of the request.
type callContext struct {
	context.Context                 //nolint:containedctx // it is a context
	values          context.Context //nolint:containedctx // consulted for values only
}

// Value implements [context.Context].
func (c callContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// smallBody is the largest body that its announced length is believed for.
const smallBody = 64 << 10

// read takes in the body within its limits of size and time. A body cut short is
// [io.ErrUnexpectedEOF].
func (h *HTTPHandler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	// net/http lifts the limit once the body is read. If that fails it stays, and what
	// is left of the body is not waited for either.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.opts.ReadTimeout))
	body, err := h.readWhole(w, r)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	return body, nil
}

func (h *HTTPHandler) readWhole(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n > 0 && n <= min(smallBody, h.opts.BodyLimit) {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	if len(r.TransferEncoding) > 0 {
		// It may have announced a length as well, which net/http hides. What follows
		// must then not be read as a request (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	var body bytes.Buffer
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.opts.BodyLimit))
	return body.Bytes(), err
}

var (
	valueJSON    = []string{"application/json"}
	valueEvents  = []string{"text/event-stream"}
	valueNoStore = []string{"no-store"}
)

// refuse answers a request that is not accepted.
func (h *HTTPHandler) refuse(w http.ResponseWriter, status int, body string) {
	h.write(w, status, valueJSON, []byte(body))
}

// empty answers without a body.
func (h *HTTPHandler) empty(w http.ResponseWriter, status int) {
	h.limitWrite(w)
	w.WriteHeader(status)
}

// limitWrite gives the answer its time. It must precede every answer: the limit of
// the one before is still set.
func (h *HTTPHandler) limitWrite(w http.ResponseWriter) {
	// A writer without deadlines is a test's.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.opts.WriteTimeout))
}

// answer answers an accepted POST with one JSON document.
func (h *HTTPHandler) answer(w http.ResponseWriter, status int, body []byte) {
	w.Header()[headerSession] = h.sessionHeader
	h.write(w, status, valueJSON, body)
}

// stream answers an accepted POST with one event per answer.
func (h *HTTPHandler) stream(w http.ResponseWriter, answers [][]byte) {
	const before, after = "event: message\ndata: ", "\n\n"
	size := 0
	for _, answer := range answers {
		size += len(before) + len(answer) + len(after)
	}
	body := make([]byte, 0, size)
	for _, answer := range answers {
		body = append(append(append(body, before...), answer...), after...)
	}
	w.Header()[headerSession] = h.sessionHeader
	h.write(w, http.StatusOK, valueEvents, body)
}

func (h *HTTPHandler) write(w http.ResponseWriter, status int, contentType []string, body []byte) {
	header := w.Header()
	header[headerContentType] = contentType
	header[headerCacheControl] = valueNoStore
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	h.limitWrite(w)
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON that no browser renders; a client that is gone needs no answer
}

// contain answers whatever went wrong with a 500, and lets an abort through.
func (h *HTTPHandler) contain(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	h.opts.Server.opts.OnError(r.Context(), &PanicError{Value: v})
	h.refuse(w, http.StatusInternalServerError, bodyInternal)
}
