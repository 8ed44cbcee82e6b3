package turns

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

func turnOf(uid types.UID, finished bool) *v1alpha1.Turn {
	t := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: uid}}
	if finished {
		t.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.TurnConditionFinished), Status: metav1.ConditionTrue}}
	}
	return t
}

func TestEndings(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "t"}
	var e Endings
	ended, stop := e.Watch(name)
	e.OnAdd(turnOf("a", false), false)
	e.OnUpdate(nil, turnOf("a", true))
	e.OnUpdate(nil, turnOf("a", true)) // its finalizer goes
	e.OnDelete(turnOf("a", true))
	e.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: turnOf("b", false)}) // deleted while nobody watched
	other := turnOf("c", true)
	other.Name = "other"
	e.OnUpdate(nil, other)
	for _, want := range []types.UID{"a", "b"} {
		select {
		case got := <-ended:
			if got.UID != want {
				t.Errorf("told of %s, want %s", got.UID, want)
			}
		default:
			t.Fatalf("not told of %s", want)
		}
	}
	select {
	case got := <-ended:
		t.Errorf("told of %s/%s once more", got.Name, got.UID)
	default:
	}
	stop()
	e.OnUpdate(nil, turnOf("d", true))
	if len(ended) != 0 || len(e.waiting) != 0 {
		t.Errorf("told after it stopped; %d wait", len(e.waiting))
	}
}

// TestEndingsNeverBlock: a Turn is told of even if nobody listens, and the informer
// goes on.
func TestEndingsNeverBlock(_ *testing.T) {
	var e Endings
	_, stop := e.Watch(types.NamespacedName{Namespace: "ns", Name: "t"})
	defer stop()
	for i := range 2 * maxEnded {
		e.OnUpdate(nil, turnOf(types.UID(rune('a'+i)), true))
	}
}

func TestNameForTellsPartsApart(t *testing.T) {
	if nameFor("message", "ab", "c") == nameFor("message", "a", "bc") {
		t.Error("two messages have one name")
	}
	if n := nameFor("message", "a", "b"); len(n) > 63 || n != nameFor("message", "a", "b") {
		t.Errorf("name %s", n)
	}
}
