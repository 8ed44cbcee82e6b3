package bench_test

import (
	"context"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// opaRule is the plain way to write it: some grant covers the path.
const opaRule = `package authz

default allow := false

allow if {
	some grant in data.grants
	grant.subject == input.subject
	input.action in grant.actions
	array.slice(input.path, 0, count(grant.path)) == grant.path
}
`

// opaKeyedRule looks the prefixes of the path up, as one writes it for speed.
const opaKeyedRule = `package authz

default allow := false

allow if {
	some i in numbers.range(0, count(input.path))
	data.keyed[input.subject][concat("/", array.slice(input.path, 0, i))][input.action]
}
`

func newOPA(tb testing.TB, n int) engine {
	tb.Helper()
	grants := make([]any, n)
	for i := range grants {
		grants[i] = map[string]any{"subject": principal, "actions": []any{action, "list"}, "path": anys(prefix(i))}
	}
	return prepare(tb, opaRule, map[string]any{"grants": grants})
}

func newKeyedOPA(tb testing.TB, n int) engine {
	tb.Helper()
	byPrefix := make(map[string]any, n)
	for i := range n {
		byPrefix[strings.Join(prefix(i), "/")] = map[string]any{action: true, "list": true}
	}
	return prepare(tb, opaKeyedRule, map[string]any{"keyed": map[string]any{principal: byPrefix}})
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func prepare(tb testing.TB, rule string, data map[string]any) engine {
	tb.Helper()
	ctx := context.Background()
	query, err := rego.New(
		rego.Query("data.authz.allow"), rego.Module("authz.rego", rule),
		rego.Store(inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))),
	).PrepareForEval(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return func(path []string, action string) bool {
		results, err := query.Eval(ctx, rego.EvalInput(map[string]any{"subject": principal, "action": action, "path": anys(path)}))
		return err == nil && results.Allowed()
	}
}
