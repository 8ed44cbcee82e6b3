package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copyLog copies a log's files into a fresh directory.
func copyLog(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestCrashAtEveryByteOfAWrite cuts a commit of three records off at every byte:
// what was acknowledged before is all there, and the log goes on.
func TestCrashAtEveryByteOfAWrite(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	l := mustOpen(t, base, Options{})
	record(t, l, "acked-0", "acked-1")
	at := l.at
	mustClose(t, l)
	var batch []byte
	for i := range 3 {
		e := event(fmt.Sprintf("batch-%d", i))
		data, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		batch, _ = appendRecord(batch, nil, data, &at)
	}
	for cut := range len(batch) + 1 {
		dir := copyLog(t, base)
		list, err := segments(dir)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(list[0].path, os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(batch[:cut]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		whole := int64(2 + strings.Count(string(batch[:cut]), "\n"))
		verified(t, dir, whole) // the verifier accepts what was never acknowledged
		l := mustOpen(t, dir, Options{})
		record(t, l, "after")
		mustClose(t, l)
		verified(t, dir, whole+1)
		text := content(t, dir)
		if !strings.Contains(text, "acked-0") || !strings.Contains(text, "acked-1") {
			t.Fatalf("cut at %d: an acknowledged record is gone", cut)
		}
	}
}

// childEnv makes the test binary write records until it is killed.
const childEnv = "AUDIT_LOG_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child records as fast as it can and prints every id once it is acknowledged.
func child(dir string) {
	l, err := Open(dir, Options{SegmentBytes: 64 << 10})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	lines := make(chan string)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := l.Record(context.Background(), event(id)); err != nil {
					return
				}
				lines <- id
			}
		}()
	}
	for id := range lines {
		fmt.Println(id)
	}
}

func TestSIGKILLLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acked []string
	for range 6 {
		acked = append(acked, killAfter(t, dir, 400)...)
		summary, err := Verify(dir)
		if err != nil {
			t.Fatalf("verify after the kill: %v", err)
		}
		if summary.Records < int64(len(acked)) {
			t.Fatalf("%d records for %d acknowledged ones", summary.Records, len(acked))
		}
	}
	text := content(t, dir)
	for _, id := range acked {
		if !strings.Contains(text, `"id":"`+id+`"`) {
			t.Fatalf("acknowledged record %s is gone", id)
		}
	}
	l := mustOpen(t, dir, Options{})
	record(t, l, "after")
	mustClose(t, l)
}

// killAfter runs a child, kills it after n acknowledgements and returns all that
// it printed.
func killAfter(t *testing.T, dir string, n int) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []string
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break // an id cut in the middle was acknowledged too, but cannot be named
		}
		if strings.HasPrefix(line, "error") {
			t.Fatal(line)
		}
		acked = append(acked, strings.TrimSpace(line))
		if len(acked) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := io.Copy(io.Discard, out); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	return acked
}
