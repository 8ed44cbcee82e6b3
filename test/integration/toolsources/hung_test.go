package toolsources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// TestHungServersDelayNoOther: sixteen servers that take connections and never answer,
// and a healthy one that is made after them.
func TestHungServersDelayNoOther(t *testing.T) {
	start(t, true)
	var asked sync.WaitGroup
	var givenUp atomic.Int32
	const many = 16
	asked.Add(many)
	ns, end := world(t, "hung"), make(chan struct{})
	for i := range many {
		first := sync.OnceFunc(asked.Done)
		web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			first()
			select {
			case <-r.Context().Done():
				givenUp.Add(1)
			case <-end:
			}
		}))
		t.Cleanup(web.Close)
		create(t, &v1alpha1.ToolNamespace{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("hung-%d", i)},
			Spec: v1alpha1.ToolNamespaceSpec{Enabled: true, Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{
				Endpoint: v1alpha1.Endpoint{URL: web.URL},
			}}},
		})
	}
	t.Cleanup(func() { close(end) })
	all := make(chan struct{})
	go func() { asked.Wait(); close(all) }()
	select {
	case <-all:
		if n := givenUp.Load(); n > 0 {
			t.Errorf("%d were given up before the last was asked", n)
		}
	case <-time.After(patience):
		t.Fatal("some servers are not asked while others hang")
	}
	w := newWiki(t)
	create(t, secret(ns, key), w.authority(ns), w.object(ns))
	until(t, ns, "wiki", func(n *v1alpha1.ToolNamespace) bool {
		return says(n, v1alpha1.ToolNamespaceReady, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonAvailable)
	})
}
