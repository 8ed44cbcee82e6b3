package bench_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// forget is an audit sink that keeps nothing; building the record is part of the answer.
type forget struct{}

// Record implements [audit.Sink].
func (forget) Record(context.Context, audit.Event) error { return nil }

type held []contract.Grant

// Load implements [kernel.GrantSource].
func (h held) Load(context.Context, contract.AccessContext) ([]contract.Grant, error) { return h, nil }

// newSharedOS asks through the public API: the answer is the whole decision with
// its audit record, which the peers do not make.
func newSharedOS(tb testing.TB, n int) engine {
	tb.Helper()
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	actor, alice := contract.Agent(principal), contract.Human("alice")
	grants := make(held, n)
	for i := range grants {
		grants[i] = contract.Grant{
			ID: fmt.Sprintf("grant-%04d", i), NamespaceID: "team-atlas", Subject: actor, Issuer: alice, IssuedAt: contract.At(now.Add(-time.Hour)),
			Capabilities: []contract.Capability{{
				Resource: contract.ResourceRef{Namespace: "files", Path: prefix(i)}, Actions: []string{action, "list"}, Scope: contract.ScopeDescendants,
			}},
		}
	}
	var ids atomic.Int64
	k, err := kernel.New(kernel.Options{
		Grants: grants, Audit: forget{}, Clock: func() time.Time { return now },
		NewID: func() string { return strconv.FormatInt(ids.Add(1), 36) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	turn, err := k.OpenTurn(context.Background(), contract.AccessContext{
		NamespaceID: "team-atlas", Actor: actor, Authority: alice, Owner: alice, Purpose: "status", TraceID: "trace", Now: contract.At(now),
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx := context.Background()
	return func(path []string, action string) bool {
		return turn.Consume(ctx, contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: action}).Allowed
	}
}
