package bench_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

func uid(kind, id string) types.EntityUID {
	return types.NewEntityUID(types.EntityType(kind), types.String(id))
}

// newCedar writes one policy per grant; containment is Cedar's own entity hierarchy.
func newCedar(tb testing.TB, n int) engine {
	tb.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "permit (principal == Agent::%q, action in [Action::\"read\", Action::\"list\"], resource in Folder::%q);\n", principal, strings.Join(prefix(i), "/"))
	}
	policies, err := cedar.NewPolicySetFromBytes("grants", []byte(text.String()))
	if err != nil {
		tb.Fatal(err)
	}
	agent := uid("Agent", principal)
	return func(path []string, action string) bool {
		// The entities are those of the request: the path's own ancestors.
		entities := make(types.EntityMap, len(path)+1)
		var parent types.EntityUIDSet
		var at types.EntityUID
		for i := range path {
			at = uid("Folder", strings.Join(path[:i+1], "/"))
			entities[at] = types.Entity{UID: at, Parents: parent}
			parent = types.NewEntityUIDSet(at)
		}
		decision, _ := cedar.Authorize(policies, entities, cedar.Request{Principal: agent, Action: uid("Action", action), Resource: at})
		return decision == cedar.Allow
	}
}
