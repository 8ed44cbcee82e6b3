package lock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestAcquireExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "lock")
	release, err := Acquire(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waited := false
	if _, err := Acquire(ctx, path, func() { waited = true }); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second Acquire: error = %v, want a deadline", err)
	}
	if !waited {
		t.Error("second Acquire did not say that it waits")
	}
	release()
	release2, err := Acquire(t.Context(), path, func() {})
	if err != nil {
		t.Fatalf("Acquire after release: %v", err)
	}
	release2()
}
