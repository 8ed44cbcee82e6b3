package bench_test

import (
	"fmt"
	"testing"
)

// sizes are how many grants are held.
var sizes = []int{1, 100, 4096}

const (
	principal = "alice-assistant"
	action    = "read"
)

// prefix is what grant i covers, with everything below it.
func prefix(i int) []string { return []string{"Work", "Projects", fmt.Sprintf("project-%04d", i)} }

// path is a file below the prefix of grant i.
func path(i int) []string { return append(prefix(i), "notes", "status.md") }

// engine answers whether the principal may act on the path.
type engine func(path []string, action string) bool

// build makes an engine over n grants.
type build func(tb testing.TB, n int) engine

// engines are compared in this order.
func engines() []struct {
	name  string
	build build
} {
	return []struct {
		name  string
		build build
	}{
		{"sharedos", newSharedOS}, {"cedar", newCedar}, {"casbin", newCasbin}, {"opa", newOPA}, {"opa-keyed", newKeyedOPA},
	}
}

// TestSameAnswers makes sure that the engines are asked the same.
func TestSameAnswers(t *testing.T) {
	for _, e := range engines() {
		for _, n := range []int{1, 100} {
			ask := e.build(t, n)
			for _, c := range []struct {
				path   []string
				action string
				want   bool
			}{
				{path(n - 1), action, true}, {path(0), action, true}, {prefix(n - 1), action, true}, {path(n - 1), "delete", false},
				{path(n), action, false}, {[]string{"Work", "Projects"}, action, false}, {[]string{"Work", "Projects", fmt.Sprintf("project-%04dx", n-1), "a"}, action, false},
			} {
				if got := ask(c.path, c.action); got != c.want {
					t.Errorf("%s with %d grants: %s %v is %t, want %t", e.name, n, c.action, c.path, got, c.want)
				}
			}
		}
	}
}

// BenchmarkAllow asks about what only the last grant allows.
func BenchmarkAllow(b *testing.B) {
	for _, n := range sizes {
		for _, e := range engines() {
			b.Run(fmt.Sprintf("grants=%d/%s", n, e.name), func(b *testing.B) {
				ask, about := e.build(b, n), path(n-1)
				b.ReportAllocs()
				for b.Loop() {
					if !ask(about, action) {
						b.Fatal("denied")
					}
				}
			})
		}
	}
}

// BenchmarkAllowParallel asks the same from every processor at once.
func BenchmarkAllowParallel(b *testing.B) {
	const n = 100
	for _, e := range engines() {
		b.Run(fmt.Sprintf("grants=%d/%s", n, e.name), func(b *testing.B) {
			ask, about := e.build(b, n), path(n-1)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if !ask(about, action) {
						b.Error("denied")
					}
				}
			})
		})
	}
}
