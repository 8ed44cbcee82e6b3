package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
	plane "github.com/sharedos-dev/operator/planes/files"
	"github.com/sharedos-dev/operator/providers/files"
)

// world is a provider over a fresh directory whose one world is kerneltest's.
type world struct {
	tb       testing.TB
	dir      string
	provider *files.Provider
	next     atomic.Int64
}

func newWorld(tb testing.TB, change ...func(*files.Options)) *world {
	tb.Helper()
	w := &world{tb: tb, dir: tb.TempDir()}
	opts := files.Options{Root: w.dir, World: kerneltest.NamespaceID, NoSync: true}
	for _, f := range change {
		f(&opts)
	}
	provider, err := files.Open(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := provider.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	w.provider = provider
	return w
}

// put writes a file behind the provider's back.
func (w *world) put(name, content string) {
	w.tb.Helper()
	name = filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.tb.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) operation(action string, path contract.Path, input string) contract.ResourceOperation {
	ac := kerneltest.New().Context()
	return contract.ResourceOperation{
		OperationID: "op-" + strconv.FormatInt(w.next.Add(1), 10),
		Resource:    contract.ResourceRef{Namespace: plane.Namespace, Path: path},
		Action:      action, Input: contract.Value(input), Context: &ac,
	}
}

// do executes one operation: its output, or the code it failed with. A failure
// without a code is returned as the error.
func (w *world) do(ctx context.Context, action string, path contract.Path, input string) (output contract.Value, code string, err error) {
	if input == "" {
		input = "{}"
	}
	op := w.operation(action, path, input)
	result, err := w.provider.Invoke(ctx, op)
	if failure, ok := errors.AsType[*kernel.Failure](err); ok {
		if failure.Err.Validate() != nil {
			w.tb.Errorf("%s %v: failure %+v is not valid", action, path, failure.Err)
		}
		return nil, failure.Err.Code, nil
	}
	if err != nil {
		return nil, "", err
	}
	if result.OperationID != op.OperationID || result.Validate() != nil {
		w.tb.Errorf("%s %v: result is not valid: %v", action, path, result.Validate())
	}
	return result.Output, "", nil
}

// must executes an operation that has to succeed and decodes its output.
func must[T any](w *world, action string, path contract.Path, input string) T {
	w.tb.Helper()
	var out T
	raw, code, err := w.do(w.tb.Context(), action, path, input)
	if err != nil || code != "" {
		w.tb.Fatalf("%s %v %.200s: code %q, error %v", action, path, input, code, err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.tb.Fatalf("%s: decode output: %v", action, err)
	}
	return out
}

// refused executes an operation that has to fail with the code.
func (w *world) refused(action string, path contract.Path, input, want string) {
	w.tb.Helper()
	if out, code, err := w.do(w.tb.Context(), action, path, input); err != nil || code != want {
		w.tb.Errorf("%s %v %.200s: code %q, output %.200s, error %v; want code %s", action, path, input, code, out, err, want)
	}
}

func p(segments ...string) contract.Path { return append(contract.Path{}, segments...) }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func decode[T any](tb testing.TB, raw contract.Value) (v T) {
	tb.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		tb.Fatalf("decode: %v", err)
	}
	return v
}

// old is an instant before whatever the test does.
func (w *world) old() time.Time { return time.Now().Add(-24 * time.Hour) }
