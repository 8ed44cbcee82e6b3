package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Defaults of [HandlerOptions].
const (
	DefaultMaxBody     = 4 << 20
	DefaultMaxInFlight = 32
	DefaultMaxWaiting  = 1024
)

// HandlerOptions configure [NewHandler]. The zero value is the strictest.
type HandlerOptions struct {
	// MaxBody bounds a request, bytes; 0 is DefaultMaxBody.
	MaxBody int64
	// Timeout bounds one operation; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxInFlight bounds the operations at one time; more wait, before their bodies
	// are read. 0 is DefaultMaxInFlight.
	MaxInFlight int
	// MaxWaiting bounds those that wait; more are answered 429, as is one that has
	// waited for Timeout. 0 is DefaultMaxWaiting.
	MaxWaiting int
	// ClientNames, when not empty, are the DNS or common names of which the
	// client's certificate must carry one.
	ClientNames []string
	// AllowPlaintext answers requests that did not come over TLS. For tests, and
	// for a connection that is authenticated by other means.
	AllowPlaintext bool
	// Clock returns the present instant; nil is time.Now.
	Clock func() time.Time
	// Log receives what a caller is not told; nil discards it.
	Log *slog.Logger
}

// NewHandler serves a provider. It requires a verified client certificate, parses
// strictly, and hands the request's cancellation to the provider.
func NewHandler(provider kernel.ResourceProvider, opts HandlerOptions) http.Handler {
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = DefaultMaxInFlight
	}
	if opts.MaxWaiting <= 0 {
		opts.MaxWaiting = DefaultMaxWaiting
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{provider: provider, opts: opts, slots: make(chan struct{}, opts.MaxInFlight)}
	mux := http.NewServeMux()
	mux.HandleFunc(Path, h.operate)
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "There is nothing here.")
	})
	return mux
}

type handler struct {
	provider kernel.ResourceProvider
	opts     HandlerOptions
	slots    chan struct{}
	waiting  atomic.Int64
}

func (h *handler) operate(w http.ResponseWriter, r *http.Request) {
	if status, message := h.admit(r); status != 0 {
		refuse(w, status, "not_accepted", message)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.opts.Timeout)
	defer cancel()
	if !h.enter(ctx) {
		refuse(w, http.StatusTooManyRequests, CodeBusy, messageOf(CodeBusy))
		return
	}
	defer func() { <-h.slots }()
	body, err := readAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody+1), r.ContentLength, h.opts.MaxBody)
	if err != nil {
		var over *http.MaxBytesError
		if errors.Is(err, errTooLarge) || errors.As(err, &over) {
			refuse(w, http.StatusRequestEntityTooLarge, CodeRequestTooLarge, messageOf(CodeRequestTooLarge))
			return
		}
		refuse(w, http.StatusBadRequest, contract.CodeInvalidRequest, "The request could not be read.")
		return
	}
	op, err := ParseOperation(body)
	if err != nil {
		// Errors of the parser name a field and a rule, never a value.
		refuse(w, http.StatusBadRequest, contract.CodeInvalidRequest, err.Error())
		return
	}
	h.answer(w, h.invoke(ctx, op))
}

// enter takes a slot, waiting for it if need be. Many turns that call at once are no
// fault: each gets its answer, only later.
func (h *handler) enter(ctx context.Context) bool {
	select {
	case h.slots <- struct{}{}:
		return true
	default:
	}
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > int64(h.opts.MaxWaiting) {
		return false
	}
	select {
	case h.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// admit answers the status to refuse the request with, or 0.
func (h *handler) admit(r *http.Request) (int, string) {
	switch {
	case r.TLS == nil && !h.opts.AllowPlaintext:
		return http.StatusForbidden, "Operations are taken over TLS only."
	case r.TLS != nil && (len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0):
		return http.StatusUnauthorized, "A client certificate is required."
	case r.TLS != nil && !h.named(r):
		return http.StatusForbidden, "The client certificate is not the kernel's."
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, "Operations are sent with POST."
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return http.StatusUnsupportedMediaType, "Operations are sent as application/json."
	}
	return 0, ""
}

func (h *handler) named(r *http.Request) bool {
	if len(h.opts.ClientNames) == 0 {
		return true
	}
	leaf := r.TLS.PeerCertificates[0]
	return slices.ContainsFunc(h.opts.ClientNames, func(name string) bool {
		return name == leaf.Subject.CommonName || slices.Contains(leaf.DNSNames, name)
	})
}

// invoke runs the provider and always has a result for op.
func (h *handler) invoke(ctx context.Context, op contract.ResourceOperation) contract.ResourceResult {
	result, err := guarded(ctx, h.provider, op)
	if err == nil && result.OperationID == op.OperationID && result.Status != "" {
		return result
	}
	out := contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusFailed, CompletedAt: contract.At(h.opts.Clock()),
	}
	var coded *kernel.Failure
	switch {
	case errors.As(err, &coded) && coded.Err.Validate() == nil:
		if coded.Status == contract.StatusDenied {
			out.Status = contract.StatusDenied
		}
		out.Error = &coded.Err
	case errors.Is(err, context.DeadlineExceeded):
		out.Error = &contract.ProtocolError{Code: CodeTimeout, Message: messageOf(CodeTimeout)}
	case errors.Is(err, context.Canceled):
		out.Error = &contract.ProtocolError{Code: CodeCancelled, Message: messageOf(CodeCancelled)}
	default:
		h.opts.Log.ErrorContext(ctx, "Operation failed", "operationId", op.OperationID, "action", op.Action, "error", err)
		out.Error = &contract.ProtocolError{
			Code: contract.CodeResourceExecutionFailed, Message: "The resource provider could not execute the operation.",
		}
	}
	return out
}

// guarded turns a provider's panic into an error.
func guarded(ctx context.Context, p kernel.ResourceProvider, op contract.ResourceOperation) (result contract.ResourceResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("provider panicked: %v", r)
		}
	}()
	return p.Invoke(ctx, op)
}

func (h *handler) answer(w http.ResponseWriter, result contract.ResourceResult) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// Encoding fails before the first byte only for malformed raw JSON, which the
	// client then refuses as an invalid answer.
	if err := enc.Encode(result); err != nil {
		h.opts.Log.Error("Answer could not be written", "operationId", result.OperationID, "error", err)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": code, "message": message}})
}
