package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

func event(id string) audit.Event {
	return audit.Event{
		Version: "1", ID: id, Type: audit.ToolInvoked, Outcome: audit.Succeeded,
		At:      contract.At(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)),
		TraceID: "trace-1", NamespaceID: "team-atlas", Actor: contract.Agent("a"),
		Authority: contract.Human("h"), Owner: contract.Human("h"), Purpose: "p", Tool: "files.read",
	}
}

func mustOpen(t *testing.T, dir string, opts Options) *Log {
	t.Helper()
	l, err := Open(dir, opts)
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return l
}

func record(t *testing.T, l *Log, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := l.Record(t.Context(), event(id)); err != nil {
			t.Fatalf("record %s: %v", id, err)
		}
	}
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close log: %v", err)
	}
}

// content is the whole log as one text.
func content(t *testing.T, dir string) string {
	t.Helper()
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, s := range list {
		data, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

func verified(t *testing.T, dir string, want int64) {
	t.Helper()
	summary, err := Verify(dir)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if summary.Records != want {
		t.Fatalf("verified %d records, want %d", summary.Records, want)
	}
}

func TestLogKeepsRecordsAcrossReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	record(t, l, "e0", "e1")
	mustClose(t, l)
	l = mustOpen(t, dir, Options{})
	record(t, l, "e2")
	mustClose(t, l)
	verified(t, dir, 3)
	text := content(t, dir)
	for _, id := range []string{"e0", "e1", "e2"} {
		if !strings.Contains(text, `"id":"`+id+`"`) {
			t.Errorf("%s is not in the log", id)
		}
	}
	if !strings.HasPrefix(text, `{"event":{"actor":{"agentId":"a","kind":"agent"}`) {
		t.Errorf("first record is not canonical: %.80s", text)
	}
}

func TestLogBeginsANewSegmentPastItsSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SegmentBytes: 1000})
	for i := range 10 {
		record(t, l, fmt.Sprintf("e%d", i))
	}
	mustClose(t, l)
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 4 {
		t.Errorf("%d segments, want several", len(list))
	}
	verified(t, dir, 10)
	l = mustOpen(t, dir, Options{SegmentBytes: 1000})
	record(t, l, "e10")
	mustClose(t, l)
	verified(t, dir, 11)
}

func TestConcurrentRecordsShareCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	var syncs atomic.Int64
	l.segment = countingFile{l.segment, &syncs}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				if err := l.Record(context.Background(), event(fmt.Sprintf("e%d-%d", i, j))); err != nil {
					t.Errorf("record: %v", err)
				}
			}
		})
	}
	wg.Wait()
	mustClose(t, l)
	verified(t, dir, 64*20)
	if n := syncs.Load(); n >= 64*20 {
		t.Errorf("%d syncs for %d records: nothing was grouped", n, 64*20)
	}
}

type countingFile struct {
	file
	syncs *atomic.Int64
}

func (c countingFile) Sync() error { c.syncs.Add(1); return c.file.Sync() }

func TestDeferredRecordsAreVouchedForByTheNextRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	for i := range 5 {
		if err := l.Defer(t.Context(), event(fmt.Sprintf("d%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	record(t, l, "last")
	verified(t, dir, 6)
	mustClose(t, l)
}

// A deferred event shares the next Record's commit, and has one of its own if none comes.
func TestADeferredRecordWaitsForAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir, Options{})
		var syncs atomic.Int64
		l.segment = countingFile{l.segment, &syncs}
		later := func(id string) {
			if err := l.Defer(t.Context(), event(id)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		want := func(when string, n int64) {
			t.Helper()
			synctest.Wait()
			if syncs := syncs.Load(); syncs != n {
				t.Errorf("%s: %d commits, want %d", when, syncs, n)
			}
		}
		later("first")
		want("deferred", 0)
		record(t, l, "second")
		want("with the next", 1)
		<-time.After(maxDeferral)
		want("nothing left", 1)
		later("third")
		<-time.After(maxDeferral - 1)
		want("not due", 1)
		<-time.After(1)
		want("due", 2)
		later("fourth")
		mustClose(t, l)
		want("closed", 3)
	})
	verified(t, dir, 4)
}

func TestSecondProcessIsKeptOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v, want ErrLocked", err)
	}
	mustClose(t, l)
	mustClose(t, mustOpen(t, dir, Options{}))
}

func TestClosedLogTakesNothing(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), Options{})
	mustClose(t, l)
	if err := l.Record(t.Context(), event("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("record after close: %v, want ErrClosed", err)
	}
	if err := l.Defer(t.Context(), event("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("defer after close: %v, want ErrClosed", err)
	}
	mustClose(t, l)
}

// brokenFile fails on demand.
type brokenFile struct {
	file
	write, sync error
}

func (b *brokenFile) Write(p []byte) (int, error) {
	if b.write != nil {
		n, _ := b.file.Write(p[:len(p)/2])
		return n, b.write
	}
	return b.file.Write(p)
}

func (b *brokenFile) Sync() error {
	if b.sync != nil {
		return b.sync
	}
	return b.file.Sync()
}

func TestLogThatFailedOnceIsNotTrustedAgain(t *testing.T) {
	t.Parallel()
	disk := errors.New("no space left")
	for name, broken := range map[string]brokenFile{"write": {write: disk}, "sync": {sync: disk}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			told := make(chan error, 1)
			l := mustOpen(t, dir, Options{OnFail: func(err error) { told <- err }})
			record(t, l, "kept")
			broken.file = l.segment
			l.segment = &broken
			err := l.Record(t.Context(), event("lost"))
			if !errors.Is(err, ErrFailed) || !errors.Is(err, disk) {
				t.Errorf("record on a broken disk: %v", err)
			}
			if err := <-told; !errors.Is(err, disk) {
				t.Errorf("OnFail was told %v", err)
			}
			broken.write, broken.sync = nil, nil
			if err := l.Record(t.Context(), event("after")); !errors.Is(err, ErrFailed) {
				t.Errorf("record after the failure: %v", err)
			}
			if err := l.Close(); !errors.Is(err, ErrFailed) {
				t.Errorf("close after the failure: %v", err)
			}
			l = mustOpen(t, dir, Options{})
			record(t, l, "again")
			mustClose(t, l)
			if text := content(t, dir); !strings.Contains(text, `"id":"kept"`) || !strings.Contains(text, `"id":"again"`) {
				t.Error("an acknowledged record is gone")
			}
			if _, err := Verify(dir); err != nil {
				t.Errorf("verify after recovery: %v", err)
			}
		})
	}
}

func TestWaitingForACommitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), Options{})
	gate := make(chan struct{})
	l.segment = gatedFile{l.segment, gate}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Record(ctx, event("e")); !errors.Is(err, context.Canceled) {
		t.Errorf("record with a cancelled context: %v", err)
	}
	close(gate)
	mustClose(t, l)
}

type gatedFile struct {
	file
	gate chan struct{}
}

func (g gatedFile) Sync() error { <-g.gate; return g.file.Sync() }

func TestWritersWaitWhenTooMuchIsPending(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MaxPending: 1})
	gate := make(chan struct{})
	l.segment = gatedFile{l.segment, gate}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := l.Record(context.Background(), event(fmt.Sprint(i))); err != nil {
				t.Errorf("record: %v", err)
			}
		})
	}
	close(gate)
	wg.Wait()
	mustClose(t, l)
	verified(t, dir, 8)
}

func TestOpenFailsWhereItCannotWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); err == nil {
		t.Error("a file was opened as a log directory")
	}
}

func TestEventThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), Options{})
	bad := event("bad")
	bad.Metadata = contract.Object(`{"a":1,"a":2}`)
	if err := l.Record(t.Context(), bad); err == nil {
		t.Error("malformed metadata was recorded")
	}
	bad.Metadata = contract.Object(`{"a":"` + strings.Repeat("x", maxRecord) + `"}`)
	if err := l.Record(t.Context(), bad); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an event that could not be read back: %v", err)
	}
	bad.Metadata = contract.Object(`{"a":"` + strings.Repeat("x", maxEvent-1024) + `"}`)
	if err := l.Record(t.Context(), bad); err != nil {
		t.Errorf("the largest event: %v", err)
	}
	record(t, l, "good")
	mustClose(t, l)
	verified(t, l.dir, 2)
}

func BenchmarkRecordGrouped(b *testing.B) {
	dir := b.TempDir()
	l, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Record(context.Background(), event("e")); err != nil {
				b.Error(err)
			}
		}
	})
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRecordAlone(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := l.Record(context.Background(), event("e")); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

func FuzzRecord(f *testing.F) {
	at := start()
	e := event("e")
	data, err := e.AppendJSON(nil)
	if err != nil {
		f.Fatal(err)
	}
	line, _ := appendRecord(nil, nil, data, &at)
	f.Add(bytes.TrimSuffix(line, []byte("\n")))
	f.Add([]byte(`{"event":{},"hash":"","prev":"","seq":0}`))
	f.Add([]byte(`{"event":null,"hash":"` + genesis + `","prev":"` + genesis + `","seq":0}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		at, err := checkRecord(line, start())
		if err != nil {
			return
		}
		// What passes is exactly what the log would have written.
		if at.Seq != 0 || !bytes.Contains(line, []byte(at.Hash)) {
			t.Fatalf("accepted %q at %+v", line, at)
		}
	})
}
