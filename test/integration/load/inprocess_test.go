//go:build load

package load

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/providers/wire"
	"github.com/sharedos-dev/operator/toolsource"
)

// inProcess is a turn of the world's agent on a kernel in this process: the same grants,
// provider and kind of audit log as the manager's, without a bridge in between.
func (w *world) inProcess(t *testing.T) *kernel.Turn {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(w.files.CA))
	provider, err := wire.NewClient(wire.Options{
		BaseURL: w.files.URL, TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}, Timeout: 30 * time.Second,
	})
	must(t, err)
	t.Cleanup(provider.Close)
	log, err := durable.Open(t.TempDir(), durable.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, log.Close()) })
	n := &v1alpha1.ToolNamespace{ObjectMeta: w.meta("files"), Spec: v1alpha1.ToolNamespaceSpec{Source: v1alpha1.ToolSource{
		Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles},
	}}}
	k, err := kernel.New(kernel.Options{
		Grants: authority.Grants{Reader: cluster.Reader(env.client)}, Audit: log, Clock: time.Now, NewID: uuid.NewString,
		Tools: toolsource.Plane(n, provider),
	})
	must(t, err)
	turn, err := k.OpenTurn(t.Context(), contract.AccessContext{
		NamespaceID: w.namespace, Actor: contract.Agent("bot"), Authority: contract.Human("alice"), Owner: contract.Human("alice"),
		Purpose: "work", EnabledToolNamespaces: []string{"files"}, TraceID: "in-process", Now: contract.At(time.Now()),
	})
	must(t, err)
	return turn
}
