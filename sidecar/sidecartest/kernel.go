package sidecartest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

// The turn that a [Kernel] has.
const (
	Turn        = "status-report"
	ExecutionID = "0f3d6d3c-execution"
	NamespaceID = "team-atlas"
	PodToken    = "the-pod-bound-token"
)

// Options adjust a [Kernel].
type Options struct {
	// Payload is the message's; a text when nil.
	Payload contract.Value
	// State is the caller's.
	State contract.Value
	// Harness is custom when empty.
	Harness string
	// Tools are published; [Tools] when nil.
	Tools []contract.PublishedTool
	// Invoke answers calls; [Invoke] when nil.
	Invoke func(r *http.Request, call bridge.InvokeRequest) (contract.ToolResult, *bridge.Error)
	// Attach may refuse or change the answer.
	Attach func(answer *bridge.AttachResponse) *bridge.Error
	// Catalog may change what is served.
	Catalog func(catalogue *contract.Catalogue)
	// Claims may change what the token says.
	Claims func(claims *mcp.ExecutionClaims)
	// BeforeSession runs before the stream's first line.
	BeforeSession func(r *http.Request)
}

// Kernel is a kernel service with one turn.
type Kernel struct {
	*httptest.Server
	// TokenFile holds [PodToken].
	TokenFile string

	opts      Options
	key       []byte
	catalogue contract.Catalogue
	ended     chan struct{}
	outcomes  chan bridge.Outcome

	mu     sync.Mutex
	calls  []bridge.InvokeRequest
	status contract.Status
	cut    chan struct{} // closed and replaced to break all streams
}

// New starts a kernel service that ends with the test.
func New(tb testing.TB, o Options) *Kernel {
	tb.Helper()
	if o.Payload == nil {
		o.Payload = contract.Value(`"When does Atlas ship?"`)
	}
	if o.Harness == "" {
		o.Harness = "custom"
	}
	if o.Tools == nil {
		o.Tools = Tools()
	}
	if o.Invoke == nil {
		o.Invoke = Invoke
	}
	hash, err := contract.CatalogHash(o.Tools)
	if err != nil {
		tb.Fatal(err)
	}
	k := &Kernel{
		opts: o, key: []byte("a key of at least thirty-two bytes"), ended: make(chan struct{}),
		outcomes: make(chan bridge.Outcome, 8), cut: make(chan struct{}),
		TokenFile: filepath.Join(tb.TempDir(), "token"),
		catalogue: contract.Catalogue{Version: contract.Version, ExecutionID: ExecutionID, CatalogHash: hash, Tools: o.Tools},
	}
	if err := os.WriteFile(k.TokenFile, []byte(PodToken), 0o600); err != nil {
		tb.Fatal(err)
	}
	k.Server = httptest.NewUnstartedServer(k.routes())
	k.EnableHTTP2 = true
	k.StartTLS()
	tb.Cleanup(func() {
		k.CloseClientConnections()
		k.Close()
	})
	return k
}

// CA is the PEM of what signs the server's certificate.
func (k *Kernel) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw})
}

// CatalogHash is the hash of the published tools.
func (k *Kernel) CatalogHash() string { return k.catalogue.CatalogHash }

// End ends the turn.
func (k *Kernel) End(status contract.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.status == "" {
		k.status = status
		close(k.ended)
	}
}

// Break breaks every open session stream.
func (k *Kernel) Break() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.cut)
	k.cut = make(chan struct{})
}

// Outcome waits for a report, and fails the test if there is none for long.
func (k *Kernel) Outcome(tb testing.TB) bridge.Outcome {
	tb.Helper()
	select {
	case o := <-k.outcomes:
		return o
	case <-time.After(patience):
		tb.Fatal("no outcome was reported")
		return bridge.Outcome{}
	}
}

// patience is longer than anything takes that works.
const patience = 30 * time.Second

// Calls returns the calls so far.
func (k *Kernel) Calls() []bridge.InvokeRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]bridge.InvokeRequest(nil), k.calls...)
}

func (k *Kernel) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+bridge.PathAttach, k.attach)
	mux.HandleFunc("GET "+bridge.PathCatalog, k.attached(k.catalog))
	mux.HandleFunc("POST "+bridge.PathInvoke, k.attached(k.invoke))
	mux.HandleFunc("POST "+bridge.PathOutcome, k.attached(k.outcome))
	mux.HandleFunc("GET "+bridge.PathSession, k.attached(k.session))
	return mux
}

func (k *Kernel) attach(w http.ResponseWriter, r *http.Request) {
	var in bridge.AttachRequest
	if r.Header.Get("Authorization") != "Bearer "+PodToken {
		refuse(w, http.StatusUnauthorized, &bridge.Error{Code: bridge.CodeUnauthenticated, Message: "no pod token"})
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Turn != Turn {
		refuse(w, http.StatusNotFound, &bridge.Error{Code: bridge.CodeTurnNotFound, Message: "no such turn"})
		return
	}
	claims := mcp.ExecutionClaims{
		ExecutionID: ExecutionID, NamespaceID: NamespaceID, Actor: "agent:alice-assistant",
		CatalogHash: k.catalogue.CatalogHash, ExpiresAt: contract.At(time.Now().Add(time.Hour)),
	}
	if k.opts.Claims != nil {
		k.opts.Claims(&claims)
	}
	token, err := mcp.MintExecutionToken(claims, k.key)
	if err != nil {
		panic(fmt.Sprintf("mint token: %v", err))
	}
	answer := bridge.AttachResponse{
		ExecutionID: ExecutionID, NamespaceID: NamespaceID, Actor: "agent:alice-assistant", TraceID: "trace-1",
		ExecutionToken: token, CatalogHash: k.catalogue.CatalogHash, Harness: k.opts.Harness,
		TimeoutSec: 60, State: k.opts.State,
		Message: contract.MessageEnvelope{
			Version: contract.Version, ID: "message-1", Purpose: "atlas-status", TraceID: "trace-1",
			Sender:   contract.Address{Kind: contract.KindHuman, ID: "alice"},
			Receiver: contract.Address{Kind: contract.KindAgent, ID: "alice-assistant"},
			Payload:  k.opts.Payload, CreatedAt: contract.At(time.Now()),
		},
	}
	if k.opts.Attach != nil {
		if refused := k.opts.Attach(&answer); refused != nil {
			refuse(w, http.StatusConflict, refused)
			return
		}
	}
	write(w, http.StatusOK, answer)
}

// attached checks both credentials, and that the turn goes on.
func (k *Kernel) attached(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := mcp.VerifyExecutionToken(r.Header.Get(bridge.HeaderExecutionToken), mcp.Keys{Current: k.key},
			mcp.VerifyOptions{Now: time.Now()})
		if err != nil || r.Header.Get("Authorization") != "Bearer "+PodToken {
			refuse(w, http.StatusUnauthorized, &bridge.Error{Code: bridge.CodeUnauthenticated, Message: "a credential is missing"})
			return
		}
		select {
		case <-k.ended:
			refuse(w, http.StatusGone, &bridge.Error{Code: bridge.CodeTurnEnded, Message: "ended"})
		default:
			next(w, r)
		}
	}
}

func (k *Kernel) catalog(w http.ResponseWriter, _ *http.Request) {
	served := k.catalogue
	served.Tools = append([]contract.PublishedTool(nil), served.Tools...)
	if k.opts.Catalog != nil {
		k.opts.Catalog(&served)
	}
	write(w, http.StatusOK, served)
}

func (k *Kernel) invoke(w http.ResponseWriter, r *http.Request) {
	var call bridge.InvokeRequest
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		refuse(w, http.StatusBadRequest, &bridge.Error{Code: bridge.CodeInvalidRequest, Message: "not a call"})
		return
	}
	k.mu.Lock()
	k.calls = append(k.calls, call)
	k.mu.Unlock()
	result, refused := k.opts.Invoke(r, call)
	if refused != nil {
		refuse(w, http.StatusForbidden, refused)
		return
	}
	write(w, http.StatusOK, result)
}

func (k *Kernel) outcome(w http.ResponseWriter, r *http.Request) {
	var o bridge.Outcome
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		refuse(w, http.StatusBadRequest, &bridge.Error{Code: bridge.CodeInvalidRequest, Message: "not an outcome"})
		return
	}
	k.outcomes <- o
	w.WriteHeader(http.StatusNoContent)
}

func (k *Kernel) session(w http.ResponseWriter, r *http.Request) {
	if k.opts.BeforeSession != nil {
		k.opts.BeforeSession(r)
	}
	k.mu.Lock()
	cut := k.cut
	k.mu.Unlock()
	line := func(e bridge.SessionEvent) {
		write(w, http.StatusOK, e)
		_ = http.NewResponseController(w).Flush() // the peer is gone
	}
	line(bridge.SessionEvent{Type: bridge.SessionAttached})
	select {
	case <-k.ended:
		k.mu.Lock()
		status := k.status
		k.mu.Unlock()
		line(bridge.SessionEvent{Type: bridge.SessionEnded, Status: status})
	case <-cut:
		panic(http.ErrAbortHandler)
	case <-r.Context().Done():
	}
}

func write(w http.ResponseWriter, status int, v any) {
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(v) // the peer is gone
}

func refuse(w http.ResponseWriter, status int, e *bridge.Error) {
	write(w, status, bridge.ErrorBody{Error: *e})
}
