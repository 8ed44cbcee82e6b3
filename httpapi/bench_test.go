package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/client"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// discard is an audit log that keeps nothing.
type discard struct{}

// Record implements [audit.Sink].
func (discard) Record(context.Context, audit.Event) error { return nil }

// benchServer is a real kernel behind TLS; its audit log and grants are in memory.
func benchServer(b *testing.B, http2 bool, tools ...kernel.Tool) *httptest.Server {
	b.Helper()
	w := kerneltest.New(kerneltest.MakeGrant("grant-1").Descendants("files", []string{}, "read", "search").Obj())
	w.Options.Audit, w.Options.Tools = discard{}, tools
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpapi.NewHTTPServer(newHandler(b, httpapi.Options{
		API: httpapi.NewKernelAPI(w.Kernel(b), nil),
		Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
			if r.Header.Get("Authorization") == "" {
				return contract.AccessContext{}, httpapi.ErrUnauthenticated
			}
			return w.Context(), nil
		}),
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	b.Cleanup(s.Close)
	return s
}

const benchConnections = 64

// spread has 64 workers share b.N operations and reports rate and 99th percentile.
func spread(b *testing.B, worker func(n int) func() error) {
	b.Helper()
	work := make([]func() error, benchConnections)
	for i := range work {
		work[i] = worker(i)
		if err := work[i](); err != nil { // the connection is open before the clock runs
			b.Fatal(err)
		}
	}
	took := make([][]time.Duration, benchConnections)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wait sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := range work {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				if err := work[i](); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	wait.Wait()
	elapsed := time.Since(start)
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "req/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkAuthorizeTLS asks POST /v1/authorize over 64 kept connections, from a
// client that only writes and reads, so that the server is what is measured.
func BenchmarkAuthorizeTLS(b *testing.B) {
	server := benchServer(b, false)
	body := compact(b, seedAuthorize)
	request := []byte("POST /v1/authorize HTTP/1.1\r\nHost: sharedos\r\nAuthorization: Bearer token\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	b.ReportAllocs()
	spread(b, func(int) func() error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(b.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		r := bufio.NewReader(conn)
		return func() error {
			if _, err := conn.Write(request); err != nil {
				return err
			}
			return readAllowed(r)
		}
	})
}

// readAllowed reads one answer, which must allow.
func readAllowed(r *bufio.Reader) error {
	length := 0
	for line := 0; ; line++ {
		text, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line == 0 && !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("answered %s", text)
		}
		if after, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(after))); err != nil {
				return err
			}
		}
		if len(text) == len("\r\n") {
			break
		}
	}
	body, err := r.Peek(length)
	if err != nil || !bytes.HasPrefix(body, []byte(`{"allowed":true,`)) {
		return fmt.Errorf("answered %s (%w)", body, err)
	}
	_, err = r.Discard(length)
	return err
}

// BenchmarkAuthorizeClientTLS is the same through the Go client, which shares the
// machine: HTTP/1.1 over 64 connections, and HTTP/2 over one.
func BenchmarkAuthorizeClientTLS(b *testing.B) {
	for _, http2 := range []bool{false, true} {
		b.Run(map[bool]string{false: "http1", true: "http2"}[http2], func(b *testing.B) {
			server := benchServer(b, http2)
			transport := server.Client().Transport.(*http.Transport)
			transport.MaxIdleConnsPerHost = benchConnections
			c, err := client.New(server.URL, client.WithToken("token"), client.WithHTTPClient(server.Client()))
			if err != nil {
				b.Fatal(err)
			}
			need := kerneltest.Need("files", "search", "Work", "Projects", "atlas")
			b.ReportAllocs()
			spread(b, func(int) func() error {
				return func() error {
					decision, err := c.Authorize(context.Background(), need)
					if err == nil && !decision.Allowed {
						err = fmt.Errorf("decided %s", decision.ReasonCode)
					}
					return err
				}
			})
		})
	}
}

// BenchmarkTools512 lists the largest catalogue there may be, over one TLS connection.
func BenchmarkTools512(b *testing.B) {
	tools := make([]kernel.Tool, 0, 511) // sharedos.escalate is another, which nobody was granted
	for i := range 512 {
		tool := seedSearch()
		tool.Definition.Name = fmt.Sprintf("files.search-%03d", i)
		tool.Definition.Description = strings.Repeat("What the tool does, at some length. ", 8)
		tool.Definition.InputSchema = contract.Object(kerneltest.PathSchema)
		tools = append(tools, tool)
	}
	server := benchServer(b, false, tools...)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/v1/tools", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer token")
		res, err := server.Client().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || n < 100_000 {
			b.Fatalf("status %d, %d bytes, %v", res.StatusCode, n, err)
		}
	}
}
