package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":{"path":["Work","Projects","atlas","plan.md"]}}}`

// noop is an invoker that does nothing.
func noop(tb testing.TB, tools int) mcp.Invoker {
	tb.Helper()
	published := []contract.PublishedTool{plainTool("files.read")}
	for i := 1; i < tools; i++ {
		tool := searchTool()
		tool.Name = fmt.Sprintf("plane.tool-%03d", i)
		published = append(published, tool)
	}
	return &echo{catalogue: catalogueOf(tb, published...)}
}

func BenchmarkHandleCall(b *testing.B) {
	server := newServer(b, mcp.ServerOptions{Invoker: noop(b, 1)})
	body := []byte(benchCall)
	b.ReportAllocs()
	for b.Loop() {
		if server.Handle(b.Context(), body) == nil {
			b.Fatal("no answer")
		}
	}
}

func BenchmarkHandleList512(b *testing.B) {
	server := newServer(b, mcp.ServerOptions{Invoker: noop(b, contract.MaxCatalogueTools)})
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	b.ReportAllocs()
	for b.Loop() {
		if server.Handle(b.Context(), body) == nil {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkFirstList512 resolves and renders the catalogue.
func BenchmarkFirstList512(b *testing.B) {
	invoker := noop(b, contract.MaxCatalogueTools)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	b.ReportAllocs()
	for b.Loop() {
		if newServer(b, mcp.ServerOptions{Invoker: invoker}).Handle(b.Context(), body) == nil {
			b.Fatal("no answer")
		}
	}
}

func post(client *http.Client, url, body string) (int64, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer token-1")
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return io.Copy(io.Discard, res.Body)
}

// BenchmarkHTTPCall is one tools/call over loopback with keep-alive, by the number
// of connections.
func BenchmarkHTTPCall(b *testing.B) {
	for _, conns := range []int{1, 8} {
		b.Run(fmt.Sprintf("connections=%d", conns), func(b *testing.B) {
			bridge := serveHTTP(b, mcp.HTTPOptions{
				Server:    newServer(b, mcp.ServerOptions{Invoker: noop(b, 1)}),
				Authorize: func(bearer string, present bool) bool { return present && bearer == "token-1" },
			})
			client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			b.SetParallelism(max(1, conns/2))
			if conns == 1 {
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					if _, err := post(client, bridge.URL(), benchCall); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
				return
			}
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := post(client, bridge.URL(), benchCall); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

func BenchmarkHTTPList512(b *testing.B) {
	bridge := serveHTTP(b, mcp.HTTPOptions{Server: newServer(b, mcp.ServerOptions{Invoker: noop(b, contract.MaxCatalogueTools)})})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		n, err := post(client, bridge.URL(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if err != nil || n < 512*100 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkStdioCall(b *testing.B) {
	server := newServer(b, mcp.ServerOptions{Invoker: noop(b, 1)})
	in := bytes.Repeat([]byte(benchCall+"\n"), 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := mcp.ServeStdio(b.Context(), server, bytes.NewReader(in), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
}
