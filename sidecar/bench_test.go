package sidecar

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/client"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sidecar/sidecartest"
)

// What the sidecar adds to a call is the difference of these two.

func BenchmarkCallAtTheKernel(b *testing.B) {
	k := sidecartest.New(b, sidecartest.Options{})
	c, err := client.New(client.Options{BaseURL: k.URL, RootCAs: k.CA(), TokenFile: k.TokenFile})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Attach(b.Context(), sidecartest.Turn); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Invoke(b.Context(), bridge.InvokeRequest{
			CallID: "c", Tool: "files.read", Arguments: contract.Object(granted)}, client.Repeatable); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCallThroughTheSidecar(b *testing.B) {
	k := sidecartest.New(b, sidecartest.Options{})
	p := start(b, k)
	p.ready()
	url, authorization := p.endpoint()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.read","arguments":` + granted + `}}`
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", authorization)
		resp, err := transport.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%v, %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// BenchmarkUntilReady is the sidecar's own part of a pod's start.
func BenchmarkUntilReady(b *testing.B) {
	k := sidecartest.New(b, sidecartest.Options{})
	for b.Loop() {
		ready := make(chan struct{}, 1)
		p := start(b, k, func(o *Options) { o.OnReady = func() { ready <- struct{}{} } })
		<-ready
		p.stop()
		if err := p.wait(); err != nil {
			b.Fatal(err)
		}
	}
}
