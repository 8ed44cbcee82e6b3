package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/identity"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/narrowing"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/toolsource"
	"github.com/sharedos-dev/operator/turns"
)

// APIOptions configure [NewAPI]. All but OnError and Stopping are required.
type APIOptions struct {
	// Live asks the API server itself, Cached reads what this process watches and
	// writes.
	Live   client.Reader
	Cached client.Client
	// Kernel are the ports of every kernel made here. The grants, the tools, messages
	// and tool namespaces are added.
	Kernel    kernel.Options
	Connector toolsource.Connector
	// Reviews and Access say who a token belongs to, and what its user may do.
	Reviews identity.TokenReviews
	Access  identity.Authorizer
	// Stopping is closed when the process is about to end.
	Stopping <-chan struct{}
	// OnError is told what callers are not.
	OnError func(err error, r *http.Request, requestID string)
}

// API is the kernel with everything around it that makes Turns, and its HTTP API.
type API struct {
	// Kernel is what runs turns too.
	Kernel  *kernel.Kernel
	Handler http.Handler
	// Endings must be given the events of an informer of Turns.
	Endings *turns.Endings
	// Tokens are the reviews of callers' tokens.
	Tokens *identity.Tokens
}

// NewAPI puts the kernel and its HTTP API together.
func NewAPI(opts APIOptions) (*API, error) {
	out := &API{Endings: &turns.Endings{}, Tokens: identity.NewTokens(opts.Reviews, opts.Kernel.Clock)}
	desk := &turns.Desk{Live: opts.Live, Writer: opts.Cached, Endings: out.Endings, Stopping: opts.Stopping}
	if opts.OnError != nil {
		desk.OnError = func(err error) { opts.OnError(err, nil, "") }
	}
	// Who may run an agent is asked of a kernel that delivers nothing itself.
	gate, err := kernel.New(over(opts.Kernel, opts.Live))
	if err != nil {
		return nil, fmt.Errorf("make the kernel of messages: %w", err)
	}
	replies := &turns.Replies{Desk: desk}
	ports := over(opts.Kernel, opts.Live)
	ports.Transport, ports.Replies = &turns.Transport{Desk: desk, Kernel: gate, Replies: replies}, replies
	ports.Namespaces = narrowing.Store{Reader: opts.Live, Writer: opts.Cached, Cache: opts.Cached}
	ports.Resources = planes(opts.Live, opts.Connector)
	ports.Providers = []kernel.ToolProvider{toolsource.Provider{Reader: cluster.Reader(opts.Live), Connector: opts.Connector}}
	if out.Kernel, err = kernel.New(ports); err != nil {
		return nil, fmt.Errorf("make the kernel: %w", err)
	}
	// What has no effect may be answered from what is watched.
	ports = over(ports, opts.Cached)
	ports.Providers = []kernel.ToolProvider{toolsource.Provider{Reader: cluster.Reader(opts.Cached), Connector: opts.Connector}}
	asked, err := kernel.New(ports)
	if err != nil {
		return nil, fmt.Errorf("make the kernel of questions: %w", err)
	}
	resolver := &identity.Resolver{
		Tokens: out.Tokens, Reader: opts.Cached, Access: opts.Access, Clock: opts.Kernel.Clock,
	}
	runner := &turns.Runner{Desk: desk, Kernel: gate, Speakers: resolver}
	handler, err := httpapi.NewHandler(httpapi.Options{
		API:      questions{API: httpapi.NewKernelAPI(out.Kernel, runner), asked: httpapi.NewKernelAPI(asked, nil)},
		Resolver: resolver, OnError: opts.OnError, CallerTraces: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the HTTP API: %w", err)
	}
	out.Handler = identity.WithCaller(handler)
	return out, nil
}

// over is a kernel's ports with authority from that reader. Uses are never cached.
func over(ports kernel.Options, reader client.Reader) kernel.Options {
	grants := authority.Grants{Reader: cluster.Reader(reader)}
	ports.Grants, ports.Delegation = grants, grants
	return ports
}

// questions answers what has no effect from another API than what has one.
type questions struct {
	httpapi.API
	asked httpapi.API
}

// Authorize implements [httpapi.API].
func (q questions) Authorize(ctx context.Context, ac contract.AccessContext, need contract.CapabilityRequirement) (contract.AuthorizationDecision, error) {
	return q.asked.Authorize(ctx, ac, need)
}

// ListTools implements [httpapi.API].
func (q questions) ListTools(ctx context.Context, ac contract.AccessContext) ([]contract.ToolDefinition, error) {
	return q.asked.ListTools(ctx, ac)
}

// Reach implements [httpapi.API].
func (q questions) Reach(ctx context.Context, ac contract.AccessContext) (contract.ReachResult, error) {
	return q.asked.Reach(ctx, ac)
}

// ListToolNamespaces implements [httpapi.API].
func (q questions) ListToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	return q.asked.ListToolNamespaces(ctx, ac)
}

// beside serves the bridges' protocol and the HTTP API on one listener. Exactly the
// protocol's own requests are the bridges'; nothing may come between the API and the
// path as it was sent.
func beside(bridges, api http.Handler) http.Handler {
	methods := map[string]string{
		bridge.PathAttach: http.MethodPost, bridge.PathCatalog: http.MethodGet, bridge.PathInvoke: http.MethodPost,
		bridge.PathOutcome: http.MethodPost, bridge.PathSession: http.MethodGet,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Everything else asks who it is first, and is told nothing of these.
		if method, ok := methods[r.URL.Path]; ok && r.URL.RawPath == "" && r.Method == method {
			bridges.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// onAPIError logs what a caller of the HTTP API was not told: a fault of ours as an
// error, and everything that is the caller's own as flow.
func (p *process) onAPIError(err error, r *http.Request, requestID string) {
	log := p.log.WithName("http-api")
	path := ""
	if r != nil {
		path = r.URL.Path
	}
	_, forbidden := errors.AsType[*httpapi.PermissionError](err)
	if forbidden || errors.Is(err, httpapi.ErrUnauthenticated) || errors.Is(err, context.Canceled) || errors.Is(err, turns.ErrStopping) {
		log.V(2).Info("Request refused", "path", path, "requestID", requestID, "reason", err.Error())
		return
	}
	log.Error(err, "Request failed", "path", path, "requestID", requestID)
}
