package durable

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsReadsInOrder(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SegmentBytes: 1})
	record(t, l, "a", "b", "c")
	read := func() (ids []string, seq int64, err error) {
		seq = -1
		for entry, fault := range Events(dir) {
			if fault != nil {
				return ids, seq, fault
			}
			if entry.Seq != seq+1 {
				t.Errorf("%d after %d", entry.Seq, seq)
			}
			ids, seq = append(ids, entry.Event.ID), entry.Seq
		}
		return ids, seq, nil
	}
	ids, _, err := read() // while it is in use
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	mustClose(t, l)
	for entry := range Events(dir) {
		if diff := cmp.Diff(event("a"), entry.Event); diff != "" {
			t.Errorf("event (-written +read):\n%s", diff)
		}
		break // early, which must stop the reading
	}
	list, err := segments(dir)
	if err != nil || len(list) < 2 {
		t.Fatalf("%d segments, %v", len(list), err)
	}
	if err := os.Remove(list[1].path); err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	if ids, _, err := read(); !errors.As(err, &damage) || damage.Seq != 1 || !errors.Is(err, ErrMissing) || len(ids) != 1 {
		t.Errorf("a missing segment: %v after %v", err, ids)
	}
}

func TestEventsStopsAtDamageAndLeavesOutATornEnd(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	record(t, l, "a", "b")
	mustClose(t, l)
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(list[0].path)
	if err != nil {
		t.Fatal(err)
	}
	count := func(data []byte) (n int, err error) {
		if err := os.WriteFile(list[0].path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, fault := range Events(dir) {
			if fault != nil {
				return n, fault
			}
			n++
		}
		return n, nil
	}
	if n, err := count(append(append([]byte{}, whole...), `{"event":{`...)); n != 2 || err != nil {
		t.Errorf("a torn end: %d records, %v", n, err)
	}
	altered := append([]byte{}, whole...)
	altered[len(altered)-100]++
	if n, err := count(altered); n != 1 || err == nil {
		t.Errorf("an altered record: %d before it, %v", n, err)
	}
}
