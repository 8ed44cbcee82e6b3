package wire_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/providers/wire"
)

type providerFunc func(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error)

func (f providerFunc) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	return f(ctx, op)
}

func operation() contract.ResourceOperation {
	ac := kerneltest.New().Context()
	return contract.ResourceOperation{
		OperationID: "op-1", Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "<a>.md"}},
		Action: "read", Input: contract.Value(`{"big":12345678901234567890}`), Context: &ac,
	}
}

func succeed(op contract.ResourceOperation, output string) contract.ResourceResult {
	return contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded, Output: contract.Value(output),
		CompletedAt: contract.At(kerneltest.Epoch),
	}
}

// serve starts a mutual TLS server and returns a function that makes clients of it.
func serve(t *testing.T, h http.Handler) (ca *authority, client func(certs ...tls.Certificate) *wire.Client) {
	t.Helper()
	ca = newAuthority(t)
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "provider", x509.ExtKeyUsageServerAuth)},
		ClientCAs:    ca.pool(), ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS13,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return ca, func(certs ...tls.Certificate) *wire.Client {
		c, err := wire.NewClient(wire.Options{
			BaseURL: server.URL, MaxResponse: 4 << 10,
			TLS: &tls.Config{RootCAs: ca.pool(), ServerName: "provider", Certificates: certs, MinVersion: tls.VersionTLS13},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

func codeOf(t *testing.T, err error) string {
	t.Helper()
	var f *kernel.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v is not a kernel.Failure", err)
	}
	if err := f.Err.Validate(); err != nil {
		t.Fatalf("failure is not valid: %v", err)
	}
	return f.Err.Code
}

func TestRoundTripCarriesOnlyTheLeastContext(t *testing.T) {
	var got contract.ResourceOperation
	var protocol atomic.Int64
	h := wire.NewHandler(providerFunc(func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		got = op
		return succeed(op, `{"n":12345678901234567890,"text":"<b>"}`), nil
	}), wire.HandlerOptions{ClientNames: []string{"kernel"}})
	ca, client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(int64(r.ProtoMajor))
		h.ServeHTTP(w, r)
	}))
	c := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth))
	result, err := c.Invoke(t.Context(), operation())
	if err != nil {
		t.Fatal(err)
	}
	want := operation()
	want.Context = &contract.AccessContext{
		NamespaceID: want.Context.NamespaceID, Actor: want.Context.Actor, Owner: want.Context.Owner,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operation at the provider (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(succeed(operation(), `{"n":12345678901234567890,"text":"<b>"}`), result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if protocol.Load() != 2 {
		t.Errorf("HTTP major version = %d, want 2", protocol.Load())
	}
}

func TestProviderOutcomesBecomeResults(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code string
	}{
		"coded":     {&kernel.Failure{Err: contract.ProtocolError{Code: contract.CodeVersionConflict, Message: "Changed."}}, contract.CodeVersionConflict},
		"other":     {errors.New("/srv/secret is broken"), contract.CodeResourceExecutionFailed},
		"cancelled": {fmt.Errorf("walk: %w", context.Canceled), wire.CodeCancelled},
		"deadline":  {context.DeadlineExceeded, wire.CodeTimeout},
		"panic":     {nil, contract.CodeResourceExecutionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ca, client := serve(t, wire.NewHandler(providerFunc(func(context.Context, contract.ResourceOperation) (contract.ResourceResult, error) {
				if tc.err == nil {
					panic("boom")
				}
				return contract.ResourceResult{}, tc.err
			}), wire.HandlerOptions{}))
			result, err := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth)).Invoke(t.Context(), operation())
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != contract.StatusFailed || result.Error.Code != tc.code || strings.Contains(result.Error.Message, "secret") {
				t.Errorf("result = %+v %+v, want failed with %s and no detail", result, result.Error, tc.code)
			}
		})
	}
}

func TestClientCertificateIsRequired(t *testing.T) {
	var reached atomic.Bool
	provider := providerFunc(func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		reached.Store(true)
		return succeed(op, `1`), nil
	})
	ca, client := serve(t, wire.NewHandler(provider, wire.HandlerOptions{ClientNames: []string{"kernel"}}))
	for name, certs := range map[string][]tls.Certificate{
		"none":       nil,
		"other name": {ca.issue(t, "somebody", x509.ExtKeyUsageClientAuth)},
		"server use": {ca.issue(t, "kernel", x509.ExtKeyUsageServerAuth)},
		"other CA":   {newAuthority(t).issue(t, "kernel", x509.ExtKeyUsageClientAuth)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client(certs...).Invoke(t.Context(), operation())
			if code := codeOf(t, err); code != wire.CodeRefused && code != wire.CodeUnavailable {
				t.Errorf("code = %s", code)
			}
		})
	}
	plain := httptest.NewServer(wire.NewHandler(provider, wire.HandlerOptions{}))
	defer plain.Close()
	c, err := wire.NewClient(wire.Options{BaseURL: plain.URL, AllowPlaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Invoke(t.Context(), operation()); codeOf(t, err) != wire.CodeRefused {
		t.Errorf("plaintext: %v, want %s", err, wire.CodeRefused)
	}
	if reached.Load() {
		t.Error("the provider was reached")
	}
}

func TestClientRefusesBadAnswers(t *testing.T) {
	good := `{"operationId":"op-1","status":"succeeded","output":1,"completedAt":"2026-12-01T09:00:00.000Z"}`
	for name, tc := range map[string]struct {
		status      int
		contentType string
		body        string
		want        string
	}{
		"good":            {200, "application/json; charset=utf-8", good, ""},
		"other operation": {200, "application/json", strings.Replace(good, "op-1", "op-2", 1), contract.CodeInvalidResourceResult},
		"duplicate key":   {200, "application/json", strings.Replace(good, `"output":1`, `"output":1,"output":2`, 1), contract.CodeInvalidResourceResult},
		"case variant":    {200, "application/json", strings.Replace(good, `"output"`, `"Output"`, 1), contract.CodeInvalidResourceResult},
		"unknown field":   {200, "application/json", strings.Replace(good, `"output":1`, `"output":1,"grants":[]`, 1), contract.CodeInvalidResourceResult},
		"trailing data":   {200, "application/json", good + good, contract.CodeInvalidResourceResult},
		"not json":        {200, "text/html", good, contract.CodeInvalidResourceResult},
		"too large":       {200, "application/json", strings.Replace(good, "1", strings.Repeat("1", 5<<10), 1), wire.CodeAnswerTooLarge},
		"redirect":        {307, "application/json", "", wire.CodeRefused},
		"too big for it":  {413, "application/json", "{}", wire.CodeRequestTooLarge},
		"busy":            {429, "application/json", "{}", wire.CodeBusy},
		"not ready":       {503, "application/json", "{}", wire.CodeUnavailable},
		"broken":          {500, "application/json", "{}", wire.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			ca, client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Content-Type", tc.contentType)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			_, err := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth)).Invoke(t.Context(), operation())
			code := ""
			if err != nil {
				code = codeOf(t, err)
			}
			if code != tc.want {
				t.Errorf("code = %q, want %q", code, tc.want)
			}
			if calls.Load() != 1 {
				t.Errorf("%d requests, want 1", calls.Load())
			}
		})
	}
}

func TestCancellationReachesTheProvider(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	ca, client := serve(t, wire.NewHandler(providerFunc(func(ctx context.Context, _ contract.ResourceOperation) (contract.ResourceResult, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return contract.ResourceResult{}, ctx.Err()
	}), wire.HandlerOptions{}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth)).Invoke(ctx, operation())
	if code := codeOf(t, err); code != wire.CodeCancelled {
		t.Errorf("code = %s, want %s", code, wire.CodeCancelled)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("provider saw %v", err)
	}
}

// TestMoreOperationsThanSlots: what is more than the provider does at one time waits and
// is answered; only what is more than may wait is refused, and is executed never.
func TestMoreOperationsThanSlots(t *testing.T) {
	const slots, waiting = 2, 5
	entered, release := make(chan struct{}, 100), make(chan struct{})
	var running, most, executed atomic.Int64
	h := wire.NewHandler(providerFunc(func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		now := running.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			continue
		}
		executed.Add(1)
		entered <- struct{}{}
		<-release
		running.Add(-1)
		return succeed(op, "1"), nil
	}), wire.HandlerOptions{MaxInFlight: slots, MaxWaiting: waiting})
	ca, client := serve(t, h)
	c := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth))
	results := make(chan error, 100)
	call := func() { _, err := c.Invoke(t.Context(), operation()); results <- err }
	for range slots {
		go call()
		<-entered
	}
	for range waiting + 3 {
		go call()
	}
	for range 3 {
		err := <-results
		if err == nil || codeOf(t, err) != wire.CodeBusy {
			t.Fatalf("one too many: %v, want %s", err, wire.CodeBusy)
		}
		if f, _ := errors.AsType[*kernel.Failure](err); f.Err.Retryable == nil || !*f.Err.Retryable {
			t.Errorf("a refusal that executed nothing is not called retryable")
		}
	}
	close(release)
	for range slots + waiting {
		if err := <-results; err != nil {
			t.Errorf("it had only to wait: %v", err)
		}
	}
	if executed.Load() != slots+waiting || most.Load() != slots {
		t.Errorf("%d executed, %d at one time; want %d and %d", executed.Load(), most.Load(), slots+waiting, slots)
	}
}

// TestWaitingEnds: one that waits for a slot longer than an operation may take is
// refused, and one whose caller has gone takes no slot.
func TestWaitingEnds(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var executed atomic.Int64
	ca, client := serve(t, wire.NewHandler(providerFunc(func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		executed.Add(1)
		entered <- struct{}{}
		<-release
		return succeed(op, "1"), nil
	}), wire.HandlerOptions{MaxInFlight: 1, Timeout: 50 * time.Millisecond}))
	c := client(ca.issue(t, "kernel", x509.ExtKeyUsageClientAuth))
	first := make(chan error, 1)
	go func() { _, err := c.Invoke(t.Context(), operation()); first <- err }()
	<-entered
	if _, err := c.Invoke(t.Context(), operation()); err == nil || codeOf(t, err) != wire.CodeBusy {
		t.Errorf("waited too long: %v, want %s", err, wire.CodeBusy)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Invoke(ctx, operation()); err == nil {
		t.Error("a caller that has gone was answered")
	}
	close(release)
	<-first
	if executed.Load() != 1 {
		t.Errorf("%d operations were executed, want 1", executed.Load())
	}
}

func TestUnreachableIsRetryable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	c, err := wire.NewClient(wire.Options{BaseURL: url, AllowPlaintext: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Invoke(t.Context(), operation())
	var f *kernel.Failure
	if !errors.As(err, &f) || f.Err.Code != wire.CodeUnavailable || f.Err.Retryable == nil || !*f.Err.Retryable {
		t.Errorf("error = %v, want retryable %s", err, wire.CodeUnavailable)
	}
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("error %q names the address", err)
	}
}

func TestHandlerRefusesRequests(t *testing.T) {
	h := wire.NewHandler(providerFunc(func(_ context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
		return succeed(op, `1`), nil
	}), wire.HandlerOptions{AllowPlaintext: true, MaxBody: 1 << 10})
	body := `{"operationId":"op-1","resource":{"namespace":"files","path":[]},"action":"list",` +
		`"context":{"namespaceId":"w","actor":{"kind":"agent","agentId":"a"},"owner":{"kind":"human","userId":"u"}}}`
	for name, tc := range map[string]struct {
		method, path, contentType, body string
		want                            int
	}{
		"good":            {"POST", wire.Path, "application/json", body, 200},
		"health":          {"GET", wire.HealthPath, "", "", 200},
		"get":             {"GET", wire.Path, "application/json", "", 405},
		"elsewhere":       {"POST", "/v1/resources/invoke", "application/json", body, 404},
		"form":            {"POST", wire.Path, "text/plain", body, 415},
		"too large":       {"POST", wire.Path, "application/json", `"` + strings.Repeat("a", 1<<10) + `"`, 413},
		"no context":      {"POST", wire.Path, "application/json", `{"operationId":"o","resource":{"namespace":"files","path":[]},"action":"list"}`, 400},
		"grants":          {"POST", wire.Path, "application/json", strings.Replace(body, `"action"`, `"grants":[],"action"`, 1), 400},
		"a parent":        {"POST", wire.Path, "application/json", strings.Replace(body, `[]`, `[".."]`, 1), 400},
		"other owner":     {"POST", wire.Path, "application/json", strings.Replace(body, `"path":[]`, `"path":[],"owner":{"kind":"human","userId":"x"}`, 1), 400},
		"duplicate owner": {"POST", wire.Path, "application/json", strings.Replace(body, `"owner":`, `"owner":{"kind":"human","userId":"x"},"owner":`, 1), 400},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.contentType)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tc.want, w.Body)
			}
		})
	}
}

func TestNewClientRefusesURLs(t *testing.T) {
	for _, u := range []string{"", "http://x", "ftp://x", "https://", "https://u:p@x", "https://x?q", "https://x#f", "://"} {
		if _, err := wire.NewClient(wire.Options{BaseURL: u}); err == nil {
			t.Errorf("NewClient(%q) succeeded", u)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("error %q shows the user", err)
		}
	}
}
