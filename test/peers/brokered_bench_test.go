package peers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	officialMCP "github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/peers/turn"
	"github.com/sharedos-dev/operator/toolsource"
)

// BenchmarkBrokered compares a call through the kernel with one of the official SDK's
// client to the same server. They take turns, so that both see the same machine; the
// overhead is the difference of the medians.
func BenchmarkBrokered(b *testing.B) {
	for name, handler := range map[string]http.Handler{"json": official(false)(b), "sse": eventStream()} {
		b.Run(name, func(b *testing.B) {
			url := serve(b, handler) + "/mcp"
			client := officialMCP.NewClient(&officialMCP.Implementation{Name: "direct", Version: "1"}, nil)
			direct, err := client.Connect(b.Context(), &officialMCP.StreamableClientTransport{Endpoint: url}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = direct.Close() }()
			in := throughKernel(b, url)
			args := json.RawMessage(`{"path":["a"]}`)
			times := map[string][]time.Duration{}
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				if _, err := direct.CallTool(b.Context(), &officialMCP.CallToolParams{Name: "noop", Arguments: args}); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				result, err := in.Bridge.Invoke(b.Context(), mcp.Invocation{CallID: "c" + strconv.Itoa(i), Tool: "peer.noop", Arguments: args})
				if err != nil || result.Status != contract.StatusSucceeded {
					b.Fatal(result, err)
				}
				times["direct"], times["brokered"] = append(times["direct"], middle.Sub(start)), append(times["brokered"], time.Since(middle))
			}
			b.StopTimer()
			median := map[string]time.Duration{}
			for of, all := range times {
				slices.Sort(all)
				median[of] = all[len(all)/2]
				b.ReportMetric(float64(median[of].Microseconds()), of+"-p50-µs")
			}
			b.ReportMetric(float64((median["brokered"] - median["direct"]).Microseconds()), "overhead-p50-µs")
		})
	}
}

// eventStream is the official SDK's server in its usual configuration.
func eventStream() http.Handler {
	server := officialMCP.NewServer(&officialMCP.Implementation{Name: "peer", Version: "1"}, nil)
	server.AddTool(&officialMCP.Tool{Name: "noop", Description: "Does nothing.", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *officialMCP.CallToolRequest) (*officialMCP.CallToolResult, error) {
			return &officialMCP.CallToolResult{Content: []officialMCP.Content{&officialMCP.TextContent{Text: "ok"}}}, nil
		})
	return officialMCP.NewStreamableHTTPHandler(func(*http.Request) *officialMCP.Server { return server }, nil)
}

// throughKernel opens a turn with the server's noop.
func throughKernel(b *testing.B, url string) *turn.Turn {
	b.Helper()
	n := &v1alpha1.ToolNamespace{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "peer", UID: "u", Generation: 1},
		Spec:       v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Endpoint: v1alpha1.Endpoint{URL: url}}}},
	}
	connections := &toolsource.Connections{Egress: &egress.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	b.Cleanup(connections.Close)
	found, err := connections.Broker(b.Context(), n)
	if err != nil {
		b.Fatal(err)
	}
	n.Generation = 2
	n.Spec.Tools = []v1alpha1.ToolDeclaration{{
		Name: "peer.noop", Upstream: "noop", SchemaDigest: found.Statuses[0].SchemaDigest, ReadWrite: v1alpha1.ToolRead,
		Requirement: v1alpha1.ToolRequirement{Action: "use", Resource: v1alpha1.RequiredResource{Namespace: "peer", Path: "['p', args.path[0]]"}},
	}}
	if found, err = connections.Broker(b.Context(), n); err != nil || len(found.Tools) != 1 {
		b.Fatal(found, err)
	}
	in, err := turn.Open(context.WithoutCancel(b.Context()), turn.Options{
		Tools: found.Tools, Capabilities: []contract.Capability{below("use", "p")}, MaxToolCalls: 10_000,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.End() })
	return in
}
