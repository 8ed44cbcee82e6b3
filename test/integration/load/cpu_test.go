//go:build load

package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// tick is the unit of the CPU times in /proc.
const tick = 10 * time.Millisecond

// cpu is the CPU time that each process has spent, by its name: this one and those it
// has started.
func cpu(t *testing.T) map[string]time.Duration {
	t.Helper()
	out := map[string]time.Duration{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		name, rest, ok := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 13 {
			t.Fatalf("%s: %q", file, raw)
		}
		pid, name, _ := strings.Cut(name, " (")
		parent := fields[1]
		if self := strconv.Itoa(os.Getpid()); pid != self && parent != self {
			continue
		}
		for _, field := range fields[11:13] { // user and system
			n, err := strconv.Atoi(field)
			must(t, err)
			out[name] += time.Duration(n) * tick
		}
	}
	return out
}

// settled waits until the API server has little to do of its own: for some time after
// the definitions are there it still compiles what it says about them.
func settled(t *testing.T) {
	t.Helper()
	const every = 2 * time.Second
	began, last := time.Now(), cpu(t)["kube-apiserver"]
	err := wait.PollUntilContextTimeout(t.Context(), every, 2*time.Minute, false, func(context.Context) (bool, error) {
		now := cpu(t)["kube-apiserver"]
		idle := now-last < every/10
		last = now
		return idle, nil
	})
	must(t, err)
	t.Logf("the API server was busy with itself for %s", time.Since(began).Round(time.Second))
}

// spent says what each process has spent for one of n since before.
func spent(t *testing.T, before map[string]time.Duration, n int) string {
	t.Helper()
	var out []string
	for name, now := range cpu(t) {
		out = append(out, fmt.Sprintf("%s %.1f ms", name, float64((now-before[name]).Microseconds())/1000/float64(n)))
	}
	return strings.Join(out, ", ")
}
