package requirement_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/requirement"
)

// BenchmarkOf is one evaluation for arguments that were parsed before, as in a call.
func BenchmarkOf(b *testing.B) {
	const schema = `{"type":"object","properties":{"page":{"type":"string"},"path":{"type":"string"},"kind":{"type":"string"},` +
		`"tags":{"type":"array","items":{"type":"string"}}},"required":["page"]}`
	raw := contract.Object(`{"page":"p-4711","path":"team/atlas/plan.md","kind":"Note","tags":["a","b","c"]}`)
	for name, expression := range map[string]string{
		"one-argument": `['pages', args.page]`,
		"a-path":       `['drive'] + args.path.segments()`,
		"a-condition":  `has(args.kind) && args.kind == 'Note' ? ['notes', args.page] : ['pages', args.page]`,
		"a-loop":       `['tags'] + args.tags.filter(t, t != '')`,
	} {
		b.Run(name, func(b *testing.B) {
			path, err := requirement.Compile(expression, contract.Object(schema))
			if err != nil {
				b.Fatal(err)
			}
			args, err := kernel.ParseArguments(raw)
			if err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				if _, err := path.Of(args); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		})
	}
}
