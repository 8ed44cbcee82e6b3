package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/sessions"
)

// Limits of a request.
const (
	// MaxInvokeBytes bounds the body of a call.
	MaxInvokeBytes = 5 << 20
	// MaxOutcomeBytes bounds the body of an outcome: its output in base64 and the rest.
	MaxOutcomeBytes = bridge.MaxOutputBytes*4/3 + 64<<10
	// maxAttachBytes bounds the body of attach.
	maxAttachBytes = 4 << 10
)

// Turns finds the live turns; [*sessions.Registry] is one.
type Turns interface {
	ByTurn(ctx context.Context, key sessions.Key) (*sessions.Session, sessions.Standing)
	ByExecution(ctx context.Context, namespace, executionID string) (*sessions.Session, sessions.Standing)
}

// Keyring holds the keys that sign execution tokens. They change over time.
type Keyring interface {
	Keys() mcp.Keys
}

// Options configure a [Server]. All but Log and Stopping are required.
type Options struct {
	Turns Turns
	// Reviewer establishes which pod a ServiceAccount token belongs to.
	Reviewer Reviewer
	Keyring  Keyring
	Clock    func() time.Time
	Log      logr.Logger
	// Stopping is closed when this manager is about to end: the session streams end
	// then, and the bridges look for the next one. Nil never is.
	Stopping <-chan struct{}
}

// Server is the kernel service's handler.
type Server struct {
	opts Options
	mux  *http.ServeMux
}

// New returns the handler of the five routes.
func New(opts Options) *Server {
	s := &Server{opts: opts, mux: http.NewServeMux()}
	s.mux.HandleFunc("POST "+bridge.PathAttach, s.attach)
	s.mux.HandleFunc("GET "+bridge.PathCatalog, s.withSession(s.catalog))
	s.mux.HandleFunc("POST "+bridge.PathInvoke, s.withSession(s.invoke))
	s.mux.HandleFunc("POST "+bridge.PathOutcome, s.withSession(s.outcome))
	s.mux.HandleFunc("GET "+bridge.PathSession, s.withSession(s.session))
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// attach binds the calling pod to its turn and mints the execution token.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	pod, err := s.caller(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	var in bridge.AttachRequest
	if err := readJSON(w, r, maxAttachBytes, &in); err != nil {
		s.refuse(w, r, err)
		return
	}
	session, standing := s.opts.Turns.ByTurn(r.Context(), sessions.Key{Namespace: pod.Namespace, Turn: in.Turn})
	if session == nil {
		s.refuse(w, r, absent(standing))
		return
	}
	if err := session.Attach(sessions.Pod{Name: pod.Name, UID: pod.UID}); err != nil {
		s.refuse(w, r, err)
		return
	}
	out := session.Response()
	out.ExecutionToken, err = mcp.MintExecutionToken(mcp.ExecutionClaims{
		ExecutionID: out.ExecutionID, NamespaceID: out.NamespaceID, Actor: out.Actor, CatalogHash: out.CatalogHash,
		ExpiresAt: contract.At(session.TokenExpiry().UTC()),
	}, s.opts.Keyring.Keys().Current)
	if err != nil {
		s.opts.Log.Error(err, "Minting an execution token failed", "turn", in.Turn)
		s.refuse(w, r, &bridge.Error{Code: bridge.CodeKernelUnavailable, Message: "no signing key yet", Retryable: true})
		return
	}
	s.opts.Log.V(2).Info("Pod attached", "namespace", pod.Namespace, "pod", pod.Name, "turn", in.Turn)
	writeJSON(w, http.StatusOK, out)
}

// withSession checks both credentials and finds the session they agree on.
func (s *Server) withSession(next func(http.ResponseWriter, *http.Request, *sessions.Session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session, err := s.authenticate(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next(w, r, session)
	}
}

func (s *Server) authenticate(r *http.Request) (*sessions.Session, error) {
	pod, err := s.caller(r)
	if err != nil {
		return nil, err
	}
	keys, now := s.opts.Keyring.Keys(), s.opts.Clock()
	token := r.Header.Get(bridge.HeaderExecutionToken)
	claims, err := mcp.VerifyExecutionToken(token, keys, mcp.VerifyOptions{
		Now: now, Expect: mcp.ExpectedClaims{NamespaceID: pod.Namespace},
	})
	if err != nil {
		var refused *mcp.TokenError
		if errors.As(err, &refused) && refused.Reason == mcp.TokenExpired {
			return nil, &bridge.Error{Code: bridge.CodeTurnEnded, Message: "the execution token has expired"}
		}
		return nil, unauthenticated("the execution token was refused")
	}
	session, standing := s.opts.Turns.ByExecution(r.Context(), claims.NamespaceID, claims.ExecutionID)
	if session == nil {
		return nil, absent(standing)
	}
	want := session.Response()
	if claims.Actor != want.Actor || claims.CatalogHash != want.CatalogHash {
		return nil, unauthenticated("the execution token belongs to another catalogue or actor")
	}
	if !session.Bound(pod.UID) {
		return nil, &bridge.Error{Code: bridge.CodePodNotBound, Message: "another pod is bound to the turn"}
	}
	return session, nil
}

// caller is the pod whose ServiceAccount token the request carries.
func (s *Server) caller(r *http.Request) (Pod, error) {
	token, ok := bearer(r.Header.Values("Authorization"))
	if !ok {
		return Pod{}, unauthenticated("a pod-bound ServiceAccount token is required")
	}
	pod, err := s.opts.Reviewer.Review(r.Context(), token)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return Pod{}, unauthenticated("the ServiceAccount token was refused")
	case err != nil:
		s.opts.Log.V(2).Info("Token review failed", "reason", err.Error())
		return Pod{}, &bridge.Error{Code: bridge.CodeKernelUnavailable, Message: "tokens cannot be reviewed now", Retryable: true}
	}
	return pod, nil
}

// absent answers for a turn without a session.
func absent(standing sessions.Standing) *bridge.Error {
	switch standing {
	case sessions.StandingMissing:
		return &bridge.Error{Code: bridge.CodeTurnNotFound, Message: "there is no such turn"}
	case sessions.StandingEnded:
		return &bridge.Error{Code: bridge.CodeTurnEnded, Message: "the turn has ended"}
	case sessions.StandingUnknown:
	}
	return &bridge.Error{Code: bridge.CodeTurnNotReady, Message: "the turn is not admitted yet", Retryable: true}
}

func unauthenticated(message string) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeUnauthenticated, Message: message}
}
