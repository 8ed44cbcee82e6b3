package files_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/kerneltest"
	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/files/fulltext"
)

// benchTree is a directory of text that is made once. SHAREDOS_BENCH_DIR keeps it
// for further runs and for other programs to search.
func benchTree(b *testing.B, name string, count, size int, change ...func(*files.Options)) *world {
	b.Helper()
	base := os.Getenv("SHAREDOS_BENCH_DIR")
	if base == "" {
		base = b.TempDir()
	}
	dir := filepath.Join(base, fmt.Sprintf("%s-%d-%d", name, count, size))
	if _, err := os.Stat(dir); err != nil {
		random := rand.New(rand.NewPCG(5, 6))
		for i := range count {
			file := filepath.Join(dir, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("f%02d.txt", i%100))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(file, prose(random, size, i), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	w := &world{tb: b, dir: dir}
	opts := files.Options{Root: dir, World: kerneltest.NamespaceID, NoSync: true}
	for _, f := range change {
		f(&opts)
	}
	provider, err := files.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = provider.Close() })
	w.provider = provider
	return w
}

// prose is text of invented words whose frequencies fall as those of a language do.
func prose(random *rand.Rand, size, seed int) []byte {
	zipf := rand.NewZipf(random, 1.1, 4, 40_000)
	var out bytes.Buffer
	for out.Len() < size {
		for range 6 + random.IntN(8) {
			out.WriteString(word(zipf.Uint64()))
			out.WriteByte(' ')
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "Document %d marker%d\n", seed, seed%997)
	return out.Bytes()[max(0, out.Len()-max(size, 32)):]
}

func word(n uint64) string {
	const syllables = "tarenodilusomekapirahefubajiwoty"
	var b strings.Builder
	for n += 7; n > 0; n /= 16 {
		b.WriteString(syllables[2*(n%16) : 2*(n%16)+2])
	}
	return b.String()
}

func BenchmarkRead1MB(b *testing.B) {
	w := newWorld(b)
	content := prose(rand.New(rand.NewPCG(1, 1)), 1<<20, 1)
	w.put("text", string(content))
	op := w.operation("read", p("text"), "{}")
	b.Run("file", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := os.ReadFile(filepath.Join(w.dir, "text")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("provider", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := w.provider.Invoke(b.Context(), op); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGrep searches 1 GB unless -short, then 64 MB.
func BenchmarkGrep(b *testing.B) {
	count := 10_000
	if testing.Short() {
		count = 640
	}
	w := benchTree(b, "grep", count, 100<<10)
	for name, input := range map[string]string{
		"literal":      `{"pattern":"marker991","caseSensitive":true}`,
		"literal-fold": `{"pattern":"Marker991"}`,
		"literal-none": `{"pattern":"sharedos kernel","caseSensitive":true}`,
		"regex":        `{"pattern":"marker99[0-9]\\b","mode":"regex","caseSensitive":true}`,
	} {
		op := w.operation("grep", p(), input)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(count) * 100 << 10)
			for b.Loop() {
				if _, err := w.provider.Invoke(b.Context(), op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSearch searches 100,000 files of 2 KB unless -short, then 2,000, by one
// to three words, and reports the median and what the process holds.
func BenchmarkSearch(b *testing.B) {
	count := 100_000
	if testing.Short() {
		count = 2000
	}
	w := benchTree(b, "search", count, 2<<10, func(o *files.Options) { o.OpenIndex = fulltext.Open })
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.provider.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	start := time.Now()
	for {
		_, code, err := w.do(b.Context(), "search", p(), `{"query":"ready"}`)
		if err != nil {
			b.Fatal(err)
		}
		if code == "" {
			break
		}
	}
	b.Logf("index current after %v", time.Since(start))
	random := rand.New(rand.NewPCG(7, 8))
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		words := make([]string, 1+random.IntN(3))
		for i := range words {
			words[i] = word(20 + random.Uint64N(5000))
		}
		words[0] = fmt.Sprintf("marker%d", random.IntN(997))
		before := time.Now()
		if _, code, err := w.do(b.Context(), "search", p(), `{"query":`+quote(strings.Join(words, " "))+`}`); code != "" || err != nil {
			b.Fatal(code, err)
		}
		took = append(took, time.Since(before))
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
}

func BenchmarkAppend(b *testing.B) {
	w := newWorld(b)
	op := w.operation("append", p("log"), `{"content":"one line of a log\n"}`)
	for b.Loop() {
		if _, err := w.provider.Invoke(b.Context(), op); err != nil {
			b.Fatal(err)
		}
	}
}
