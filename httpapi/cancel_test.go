package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestClientGone: a client that leaves ends the work, down to the provider, whatever
// the protocol; the provider does not commit.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, httpapi.Options) *httptest.Server{"HTTP/1.1": serve, "HTTP/2": serveTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, ended := make(chan struct{}), make(chan error, 1)
			w := kerneltest.New(kerneltest.MakeGrant("g").Descendants("files", []string{"Work"}, "read").Obj())
			w.Options.Resources = map[string]kernel.ResourceProvider{"files": &kerneltest.Plane{
				Answer: func(ctx context.Context, _ contract.ResourceOperation) (contract.ResourceResult, error) {
					close(began)
					<-ctx.Done()
					ended <- ctx.Err()
					return contract.ResourceResult{}, ctx.Err()
				},
			}}
			server := start(t, httpapi.Options{API: httpapi.NewKernelAPI(w.Kernel(t), nil), Resolver: as(w.Context())})
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/resources/invoke",
				strings.NewReader(`{"operationId":"o","resource":{"namespace":"files","path":["Work"]},"action":"read"}`))
			if err != nil {
				t.Fatal(err)
			}
			left := make(chan error, 1)
			go func() {
				res, err := server.Client().Do(req)
				if err == nil {
					_ = res.Body.Close()
				}
				left <- err
			}()
			<-began
			leave()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("client: %v", err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("provider: %v", err)
			}
		})
	}
}

// TestTurnOfAClientThatLeft is cancelled by the runner's context.
func TestTurnOfAClientThatLeft(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	runner := runnerFunc(func(ctx context.Context, _ contract.AccessContext, _ contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return contract.ExecutionResult{}, ctx.Err()
	})
	server := serve(t, httpapi.Options{API: httpapi.NewKernelAPI(kerneltest.New().Kernel(t), runner)})
	conn := dial(t, server)
	if _, err := conn.Write([]byte(rawPost("/v1/turns", "HTTP/1.1", seedTurn, "Host: x"))); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

type runnerFunc func(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error)

// RunTurn implements [httpapi.TurnRunner].
func (f runnerFunc) RunTurn(ctx context.Context, ac contract.AccessContext, req contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
	return f(ctx, ac, req)
}

// TestRunnersAnswers: a runner that answers nonsense is the server's failure.
func TestRunnersAnswers(t *testing.T) {
	t.Parallel()
	fine := contract.ExecutionResult{
		Version: contract.Version, ExecutionID: "execution-1", TraceID: "trace-1", Status: contract.StatusSucceeded,
		Output: contract.Value(`1`), StartedAt: seedNow, CompletedAt: seedNow,
	}
	other := fine
	other.ExecutionID = "execution-2"
	malformed := fine
	malformed.Status = "done"
	for name, tt := range map[string]struct {
		result contract.ExecutionResult
		err    error
		status int
		code   string
	}{
		"fine":      {fine, nil, 200, ""},
		"another's": {other, nil, 500, "internal_error"},
		"malformed": {malformed, nil, 500, "internal_error"},
		"an error":  {fine, errors.New("etcd is gone"), 500, "internal_error"},
		"refused":   {fine, &httpapi.PermissionError{Message: "no Harness"}, 403, "permission_denied"},
	} {
		runner := runnerFunc(func(context.Context, contract.AccessContext, contract.RemoteExecutionRequest) (contract.ExecutionResult, error) {
			return tt.result, tt.err
		})
		g := do(t, http.MethodPost, serve(t, httpapi.Options{API: httpapi.NewKernelAPI(kerneltest.New().Kernel(t), runner)}).URL+"/v1/turns", seedTurn)
		if g.status != tt.status || g.code(t) != tt.code {
			t.Errorf("%s: status %d, body %s", name, g.status, g.body)
		}
		if tt.status == 200 && !strings.Contains(g.body, `"events":[]`) {
			t.Errorf("%s: body %s", name, g.body)
		}
	}
}

// TestServer: it serves until it is told to end, lets running requests end, cuts off
// those that do not, and leaves nothing behind.
func TestServer(t *testing.T) {
	before := runtime.NumGoroutine()
	began, release := make(chan struct{}, 2), make(chan struct{})
	api := allow()
	api.reach = func(context.Context, contract.AccessContext) (contract.ReachResult, error) {
		began <- struct{}{}
		<-release
		return contract.ReachResult{Status: "computed", Reach: []contract.ReachEntry{}}, nil
	}
	api.tools = func(ctx context.Context, _ contract.AccessContext) ([]contract.ToolDefinition, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tt := range map[string]struct {
		path    string
		grace   time.Duration
		cut     bool
		release bool
	}{
		"waits":    {"/v1/reach", time.Minute, false, true},
		"cuts off": {"/v1/tools", time.Millisecond, true, false},
	} {
		s, err := httpapi.Listen(t.Context(), httpapi.ServerOptions{Handler: newHandler(t, httpapi.Options{API: api}), ShutdownTimeout: tt.grace})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		client := &http.Client{Transport: &http.Transport{}}
		if g := doReader(t, client, http.MethodGet, s.URL()+"/health", http.NoBody); g.status != 200 {
			t.Errorf("%s: status %d", name, g.status)
		}
		answered := make(chan error, 1)
		go func() {
			res, err := client.Get(s.URL() + tt.path)
			if err == nil {
				_ = res.Body.Close()
			}
			answered <- err
		}()
		<-began
		end()
		if tt.release {
			close(release)
		}
		if err := <-served; (err != nil) != tt.cut {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-answered; (err != nil) != tt.cut {
			t.Errorf("%s: client: %v", name, err)
		}
		client.CloseIdleConnections()
	}
	for range 200 { // goroutines of closed connections end in their own time
		if runtime.NumGoroutine() <= before {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

func TestServerOptions(t *testing.T) {
	t.Parallel()
	if _, err := httpapi.Listen(t.Context(), httpapi.ServerOptions{}); !errors.Is(err, httpapi.ErrNoHandler) {
		t.Errorf("error %v", err)
	}
	if _, err := httpapi.Listen(t.Context(), httpapi.ServerOptions{Handler: http.NotFoundHandler(), Address: "256.0.0.1:1"}); err == nil {
		t.Error("listens nowhere")
	}
}
