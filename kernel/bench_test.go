package kernel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// grantsFor makes n grants, of which only the last one covers the question.
func grantsFor(n int) []contract.Grant {
	list := make([]contract.Grant, n)
	for i := range list {
		list[i] = kerneltest.MakeGrant(fmt.Sprintf("grant-%04d", i)).Descendants("files", []string{"Work", "Projects", fmt.Sprintf("project-%04d", i)}, "read", "list").Obj()
	}
	return list
}

// question is about a file below the last grant's prefix.
func questionFor(n int) contract.CapabilityRequirement {
	return kerneltest.Need("files", "read", "Work", "Projects", fmt.Sprintf("project-%04d", n-1), "notes", "status.md")
}

var sizes = []int{1, 100, 4096}

func BenchmarkDecision(b *testing.B) {
	for _, n := range sizes {
		turn, need := kerneltest.New(grantsFor(n)...).Turn(b), questionFor(n)
		ctx := context.Background()
		b.Run(fmt.Sprintf("grants=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !turn.Allows(ctx, need, kerneltest.Epoch, kernel.ModeConsume) {
					b.Fatal("denied")
				}
			}
		})
		b.Run(fmt.Sprintf("grants=%d/parallel", n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if !turn.Allows(ctx, need, kerneltest.Epoch, kernel.ModeConsume) {
						b.Error("denied")
					}
				}
			})
		})
		denied := kerneltest.Need("files", "delete", "Work", "Projects", "project-0000")
		b.Run(fmt.Sprintf("grants=%d/denied", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if turn.Allows(ctx, denied, kerneltest.Epoch, kernel.ModeConsume) {
					b.Fatal("allowed")
				}
			}
		})
	}
}

// BenchmarkDecisionUnderOnePath is the worst case for the index: every grant covers
// the same path and all but the last are spent.
func BenchmarkDecisionUnderOnePath(b *testing.B) {
	list := make([]contract.Grant, 100)
	w := kerneltest.New()
	for i := range list {
		list[i] = kerneltest.MakeGrant(fmt.Sprintf("grant-%04d", i)).Descendants("files", nil, "read").MaxUses(1).Obj()
		if _, err := w.Uses.Consume(b.Context(), kernel.Use{GrantID: list[i].ID, MaxUses: 1}); err != nil {
			b.Fatal(err)
		}
	}
	list[len(list)-1].Constraints.MaxUses = nil
	w.Grants.Set(list...)
	turn, need := w.Turn(b), kerneltest.Need("files", "read", "Work")
	b.ReportAllocs()
	for b.Loop() {
		if !turn.Allows(b.Context(), need, kerneltest.Epoch, kernel.ModeConsume) {
			b.Fatal("denied")
		}
	}
}

func BenchmarkDelegationChain(b *testing.B) {
	for _, n := range []int{1, 8, 16} {
		b.Run(fmt.Sprintf("ancestors=%d", n), func(b *testing.B) {
			first, ancestors := chain(n)
			w := kerneltest.New(first)
			w.Options.Delegation = newByID(ancestors)
			turn, need := w.Turn(b), kerneltest.Need("files", "read", "Work", "a")
			b.ReportAllocs()
			for b.Loop() {
				if !turn.Allows(context.Background(), need, kerneltest.Epoch, kernel.ModeConsume) {
					b.Fatal("denied")
				}
			}
		})
	}
}

// byID is a resolver that costs one look-up.
type byID map[string]contract.Grant

func newByID(grants []contract.Grant) byID {
	m := make(byID, len(grants))
	for i := range grants {
		m[grants[i].ID] = grants[i]
	}
	return m
}

func (m byID) Resolve(_ context.Context, _, id string) (contract.Grant, error) { return m[id], nil }

func BenchmarkOpenTurn(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("grants=%d", n), func(b *testing.B) {
			w := kerneltest.New(grantsFor(n)...)
			w.Options.Audit = discard{}
			k := w.Kernel(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.OpenTurn(b.Context(), w.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCatalogue filters 512 tools against 100 grants, publishes and hashes them.
func BenchmarkCatalogue(b *testing.B) {
	w := kerneltest.New(append(grantsFor(100), kerneltest.MakeGrant("all").Descendants("files", nil, "*").Obj())...)
	w.Options.Audit = discard{}
	plane := &kerneltest.Plane{}
	for i := range contract.MaxCatalogueTools {
		d := kerneltest.Definition("read", contract.ClassRead)
		d.Name = fmt.Sprintf("files.tool-%03d", i)
		w.Options.Tools = append(w.Options.Tools, kernel.NewResourceTool(d, plane))
	}
	k := w.Kernel(b)
	b.ReportAllocs()
	for b.Loop() {
		turn, err := k.OpenTurn(b.Context(), w.Context())
		if err != nil {
			b.Fatal(err)
		}
		c, err := turn.Catalog(b.Context())
		if err != nil || len(c.Published()) != contract.MaxCatalogueTools || c.Hash() == "" {
			b.Fatal(err)
		}
	}
}

// BenchmarkInvoke is one mediated call without the envelope; nothing is recorded.
func BenchmarkInvoke(b *testing.B) {
	w := kerneltest.New(readGrant("a").Obj())
	w.Options.Audit = discard{}
	w.Options.Tools = []kernel.Tool{probe(nil)}
	turn := w.Turn(b)
	if _, err := turn.Catalog(b.Context()); err != nil {
		b.Fatal(err)
	}
	call := kerneltest.Call("call-1", "files.probe", `{"path":["Work","a","status.md"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if r := turn.Invoke(b.Context(), call); r.Status != "succeeded" {
			b.Fatal(r.Error)
		}
	}
}

// BenchmarkBoundedUse spends a bounded grant from several threads.
func BenchmarkBoundedUse(b *testing.B) {
	w := kerneltest.New(readGrant("a").MaxUses(contract.MaxSafeInteger).Obj())
	turn, need := w.Turn(b), kerneltest.Need("files", "read", "Work")
	var once sync.Once
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !turn.Allows(context.Background(), need, kerneltest.Epoch, kernel.ModeConsume) {
				once.Do(func() { b.Error("denied") })
			}
		}
	})
}
