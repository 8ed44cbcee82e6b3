package authority_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/objects/cluster"
)

// counting counts the writes, and lets the first wait until it is told to go on.
type counting struct {
	client.StatusWriter
	writes  atomic.Int64
	begun   chan struct{}
	proceed chan struct{}
}

func (c *counting) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if c.writes.Add(1) == 1 && c.begun != nil {
		close(c.begun)
		<-c.proceed
	}
	return c.StatusWriter.Patch(ctx, o, p, opts...)
}

// TestUsesOfOneProcessDoNotConflict: each costs one write, however many come at once.
func TestUsesOfOneProcessDoNotConflict(t *testing.T) {
	const callers = 64
	c := store(t, grant("g", "alice", "bot"))
	writer := &counting{StatusWriter: c.Status()}
	uses := &authority.Uses{Reader: cluster.Reader(c), Writer: cluster.GrantStatus{Writer: writer}}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if ok, err := uses.Consume(t.Context(), kernel.Use{NamespaceID: namespace, GrantID: "g", MaxUses: callers}); !ok || err != nil {
				t.Errorf("consume: %t %v", ok, err)
			}
		})
	}
	wg.Wait()
	if got := writer.writes.Load(); got != callers {
		t.Errorf("%d writes for %d uses", got, callers)
	}
}

// TestWaitingForAUse: who stops waiting spends nothing and holds nobody up, and
// another Grant has another line.
func TestWaitingForAUse(t *testing.T) {
	c := store(t, grant("g", "alice", "bot"), grant("h", "alice", "bot"))
	writer := &counting{StatusWriter: c.Status(), begun: make(chan struct{}), proceed: make(chan struct{})}
	uses := &authority.Uses{Reader: cluster.Reader(c), Writer: cluster.GrantStatus{Writer: writer}}
	use := kernel.Use{NamespaceID: namespace, GrantID: "g", MaxUses: 2}
	first := make(chan error, 1)
	go func() {
		_, err := uses.Consume(t.Context(), use)
		first <- err
	}()
	<-writer.begun
	if ok, err := uses.Consume(t.Context(), kernel.Use{NamespaceID: namespace, GrantID: "h", MaxUses: 1}); !ok || err != nil {
		t.Errorf("another Grant's use: %t %v", ok, err)
	}
	gone := errors.New("the caller went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if ok, err := uses.Consume(ctx, use); ok || !errors.Is(err, gone) {
		t.Errorf("a use that was not waited for: %t %v", ok, err)
	}
	close(writer.proceed)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	if ok, err := uses.Consume(t.Context(), use); !ok || err != nil {
		t.Errorf("the last use: %t %v; the one that went away must not have spent it", ok, err)
	}
}
