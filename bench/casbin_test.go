package bench_test

import (
	"strings"
	"testing"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
)

const casbinModel = `
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.act == p.act && r.sub == p.sub && keyMatch(r.obj, p.obj)
`

// newCasbin writes one rule per grant; paths end in a slash so that a prefix
// matches whole segments.
func newCasbin(tb testing.TB, n int) engine {
	tb.Helper()
	m, err := model.NewModelFromString(casbinModel)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		tb.Fatal(err)
	}
	rules := make([][]string, n)
	for i := range rules {
		rules[i] = []string{principal, strings.Join(prefix(i), "/") + "/*", action}
	}
	if _, err := e.AddPolicies(rules); err != nil {
		tb.Fatal(err)
	}
	return func(path []string, action string) bool {
		allowed, err := e.Enforce(principal, strings.Join(path, "/")+"/", action)
		return err == nil && allowed
	}
}
