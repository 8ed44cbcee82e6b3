package authority_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/objects/cluster"
)

const namespace = "ns"

func principal(name string, kind v1alpha1.AddressKind, id string) *v1alpha1.Principal {
	return &v1alpha1.Principal{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(kind, id)},
	}
}

func grant(name string, issuer, subject v1alpha1.ObjectName, change ...func(*v1alpha1.Grant)) *v1alpha1.Grant {
	g := &v1alpha1.Grant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
		Spec: v1alpha1.GrantSpec{Issuer: issuer, Subject: subject, Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{}},
			Actions:  []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeDescendants,
		}}},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func store(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Grant{}).WithObjects(objects...).Build()
}

func TestLoadAnswersExactly(t *testing.T) {
	elsewhere := grant("elsewhere", "alice", "bot")
	elsewhere.Namespace = "other"
	c := store(t,
		principal("alice", v1alpha1.AddressHuman, "alice"), principal("bob", v1alpha1.AddressHuman, "bob"),
		principal("bot", v1alpha1.AddressAgent, "bot"),
		principal("twin-1", v1alpha1.AddressHuman, "twin"), principal("twin-2", v1alpha1.AddressHuman, "twin"),
		grant("mine", "alice", "bot"), grant("others", "bob", "bot"), grant("reverse", "bot", "alice"), grant("nobody", "alice", "gone"),
		grant("a-twins", "twin-1", "bot"), elsewhere,
		grant("owner-gone", "alice", "bot", func(g *v1alpha1.Grant) { g.Spec.Capabilities[0].Resource.Owner = "gone" }),
		grant("revoked", "alice", "bot", func(g *v1alpha1.Grant) { g.Spec.Revoked = true }),
	)
	got, err := authority.Grants{Reader: cluster.Reader(c)}.Load(t.Context(), contract.AccessContext{
		NamespaceID: namespace, Actor: contract.Agent("bot"), Authority: contract.Human("alice"),
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]contract.Grant{}
	for _, g := range got {
		names[g.ID] = g
	}
	if len(names) != 2 || names["mine"].ID == "" || names["revoked"].RevokedAt == nil {
		t.Errorf("loaded %v; want mine, and revoked as revoked", names)
	}
	if twins, err := (authority.Grants{Reader: cluster.Reader(c)}).Load(t.Context(), contract.AccessContext{
		NamespaceID: namespace, Actor: contract.Agent("bot"), Authority: contract.Human("twin"),
	}); err != nil || len(twins) != 0 {
		t.Errorf("a duplicate address gave authority: %v %v", twins, err)
	}
}

func TestAnEditedGrantIsAnotherGrant(t *testing.T) {
	load := func(g *v1alpha1.Grant) kernel.GrantRef {
		t.Helper()
		c := store(t, principal("alice", v1alpha1.AddressHuman, "alice"), principal("bot", v1alpha1.AddressAgent, "bot"), g)
		got, err := authority.Grants{Reader: cluster.Reader(c)}.Load(t.Context(), contract.AccessContext{
			NamespaceID: namespace, Actor: contract.Agent("bot"), Authority: contract.Human("alice"),
		})
		if err != nil || len(got) != 1 {
			t.Fatalf("%v %v", got, err)
		}
		ref, err := kernel.ReferenceTo(got[0])
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	first := load(grant("g", "alice", "bot"))
	if again := load(grant("g", "alice", "bot")); again != first {
		t.Errorf("the same grant has two references: %v %v", first, again)
	}
	for name, change := range map[string]func(*v1alpha1.Grant){
		"edited": func(g *v1alpha1.Grant) { g.Generation = 2 }, "recreated": func(g *v1alpha1.Grant) { g.UID = "another" },
	} {
		if other := load(grant("g", "alice", "bot", change)); other == first {
			t.Errorf("%s: still the same reference", name)
		}
	}
}

func TestResolve(t *testing.T) {
	c := store(t, principal("alice", v1alpha1.AddressHuman, "alice"), principal("bot", v1alpha1.AddressAgent, "bot"), grant("g", "alice", "bot"))
	grants := authority.Grants{Reader: cluster.Reader(c)}
	if got, err := grants.Resolve(t.Context(), namespace, "g"); err != nil || got.ID != "g" {
		t.Errorf("%v %v", got, err)
	}
	for name, in := range map[string][2]string{"missing": {namespace, "no"}, "another world": {"other", "g"}} {
		if _, err := grants.Resolve(t.Context(), in[0], in[1]); !errors.Is(err, kernel.ErrGrantNotFound) {
			t.Errorf("%s: %v, want ErrGrantNotFound", name, err)
		}
	}
}

// TestExactlyMaxUses spends a bounded grant from many goroutines of two replicas.
func TestExactlyMaxUses(t *testing.T) {
	const callers, maxUses = 32, 5
	c := store(t, grant("g", "alice", "bot"))
	uses := &authority.Uses{Reader: cluster.Reader(c), Writer: cluster.GrantStatus{Writer: c.Status()}}
	replica := &authority.Uses{Reader: cluster.Reader(c), Writer: cluster.GrantStatus{Writer: c.Status()}}
	use := kernel.Use{NamespaceID: namespace, GrantID: "g", MaxUses: maxUses}
	var spent atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		from := uses
		if i%2 == 1 {
			from = replica
		}
		wg.Go(func() {
			ok, err := from.Consume(t.Context(), use)
			if err != nil {
				t.Errorf("consume: %v", err)
			}
			if ok {
				spent.Add(1)
			}
		})
	}
	wg.Wait()
	if spent.Load() != maxUses {
		t.Errorf("%d calls succeeded, want %d", spent.Load(), maxUses)
	}
	if left, err := uses.Remaining(t.Context(), use); err != nil || left != 0 {
		t.Errorf("remaining %d %v, want 0", left, err)
	}
	if _, err := uses.Consume(t.Context(), kernel.Use{NamespaceID: namespace, GrantID: "gone", MaxUses: 1}); err == nil {
		t.Error("a use of a grant that is gone was spent")
	}
}

// rendezvous lets the first reads go on only together, so that all of them have
// seen the same version.
type rendezvous struct {
	client.Reader
	meet    sync.WaitGroup
	pending atomic.Int64
}

func (r *rendezvous) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, into, opts...)
	if r.pending.Add(-1) >= 0 {
		r.meet.Done()
		r.meet.Wait()
	}
	return err
}

// TestOneLastUse has two replicas read the same last use before either spends it.
func TestOneLastUse(t *testing.T) {
	c := store(t, grant("g", "alice", "bot"))
	reader := &rendezvous{Reader: c}
	reader.meet.Add(2)
	reader.pending.Store(2)
	var spent atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		uses := &authority.Uses{Reader: cluster.Reader(reader), Writer: cluster.GrantStatus{Writer: c.Status()}}
		wg.Go(func() {
			if ok, err := uses.Consume(t.Context(), kernel.Use{NamespaceID: namespace, GrantID: "g", MaxUses: 1}); err != nil {
				t.Errorf("consume: %v", err)
			} else if ok {
				spent.Add(1)
			}
		})
	}
	wg.Wait()
	if spent.Load() != 1 {
		t.Errorf("the last use was spent %d times", spent.Load())
	}
}
