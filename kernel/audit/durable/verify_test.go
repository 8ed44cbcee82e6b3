package durable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fixture is a closed log of ten records in segments of four.
func fixture(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SegmentBytes: 1500})
	for i := range 10 {
		record(t, l, fmt.Sprintf("e%d", i))
	}
	mustClose(t, l)
	return dir
}

// edit rewrites one segment's lines.
func edit(t *testing.T, path string, change func(lines [][]byte) [][]byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = change(lines[:len(lines)-1])
	if err := os.WriteFile(path, slices.Concat(lines...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifierNamesTheFirstDamagedRecord(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(t *testing.T, list []segment)
		wantSeq int64
		wantErr error
	}{
		"altered": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte {
				l[1] = bytes.Replace(l[1], []byte("succeeded"), []byte("denied..."), 1)
				return l
			})
		}, 1, errHash},
		"altered and hashed anew": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte {
				e := event("forged")
				data, err := e.AppendJSON(nil)
				if err != nil {
					t.Fatal(err)
				}
				at := start()
				l[0], _ = appendRecord(nil, nil, data, &at)
				return l
			})
		}, 1, errChain},
		"dropped": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) })
		}, 1, errSequence},
		"repeated": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte { return slices.Insert(l, 1, l[0]) })
		}, 1, errSequence},
		"swapped": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l })
		}, 0, errSequence},
		"reformatted": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte {
				l[1] = bytes.Replace(l[1], []byte(`{"event"`), []byte(`{ "event"`), 1)
				return l
			})
		}, 1, errDamaged},
		"last record cut off": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[len(list)-1].path, func(l [][]byte) [][]byte { return l[:len(l)-1] })
		}, 9, ErrTruncated},
		"last record cut short": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[len(list)-1].path, func(l [][]byte) [][]byte {
				l[len(l)-1] = l[len(l)-1][:40]
				return l
			})
		}, 9, errTorn},
		"middle segment cut short": {func(t *testing.T, list []segment) {
			t.Helper()
			edit(t, list[0].path, func(l [][]byte) [][]byte {
				l[len(l)-1] = l[len(l)-1][:40]
				return l
			})
		}, 3, errTorn},
		"first segment removed": {func(t *testing.T, list []segment) {
			t.Helper()
			if err := os.Remove(list[0].path); err != nil {
				t.Fatal(err)
			}
		}, 0, ErrMissing},
		"last segment removed": {func(t *testing.T, list []segment) {
			t.Helper()
			if err := os.Remove(list[len(list)-1].path); err != nil {
				t.Fatal(err)
			}
		}, 8, ErrTruncated},
		"rewritten to the end": {func(t *testing.T, list []segment) {
			t.Helper()
			last := list[len(list)-1]
			edit(t, last.path, func(l [][]byte) [][]byte {
				e := event("forged")
				data, err := e.AppendJSON(nil)
				if err != nil {
					t.Fatal(err)
				}
				before, err := os.ReadFile(list[len(list)-2].path)
				if err != nil {
					t.Fatal(err)
				}
				lines := bytes.Split(bytes.TrimSpace(before), []byte("\n"))
				previous := lines[len(lines)-1]
				i := bytes.Index(previous, []byte(partHash)) + len(partHash)
				at := position{Seq: last.first - 1, Hash: string(previous[i : i+hashLen])}
				for i := range l {
					l[i], _ = appendRecord(nil, nil, data, &at)
				}
				return l
			})
		}, 9, ErrHeadMismatch},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fixture(t)
			list, err := segments(dir)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(t, list)
			_, err = Verify(dir)
			var damage *DamageError
			if !errors.As(err, &damage) {
				t.Fatalf("verify: %v, want damage", err)
			}
			if damage.Seq != tt.wantSeq || !errors.Is(err, tt.wantErr) {
				t.Errorf("verify: record %d, %v; want record %d, %v", damage.Seq, damage.Err, tt.wantSeq, tt.wantErr)
			}
			if _, err := Open(dir, Options{}); !errors.As(err, &damage) {
				t.Errorf("a damaged log was opened: %v", err)
			}
		})
	}
}

// TestEveryAlteredByteIsNoticed flips each byte of a log in turn.
func TestEveryAlteredByteIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	record(t, l, "e0", "e1")
	mustClose(t, l)
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(list[0].path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		altered := bytes.Clone(data)
		altered[i] ^= 0x01
		if err := os.WriteFile(list[0].path, altered, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(dir); err == nil {
			t.Fatalf("altering byte %d (%q to %q) was not noticed", i, data[i], altered[i])
		}
	}
}

func TestDamagedHeadIsNoticed(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"not JSON": "garbage", "unknown field": `{"hash":"","seq":1,"x":1}`, "ahead": string(encodeHead(position{Seq: 99, Hash: genesis})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fixture(t)
			if err := os.WriteFile(filepath.Join(dir, headName), []byte(head), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(dir); err == nil {
				t.Error("verified")
			}
			if _, err := Open(dir, Options{}); err == nil {
				t.Error("opened")
			}
		})
	}
}

func TestStrangeSegmentNamesAreRefused(t *testing.T) {
	t.Parallel()
	dir := fixture(t)
	if err := os.WriteFile(filepath.Join(dir, "audit-x.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir); err == nil {
		t.Error("verified")
	}
	if _, err := Verify(filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent log was verified")
	}
}

func TestVerifyReportsAnIncompleteTail(t *testing.T) {
	t.Parallel()
	dir := fixture(t)
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(list[len(list)-1].path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"event":`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	summary, err := Verify(dir)
	if err != nil || summary.Torn != 9 || summary.Records != 10 || len(summary.Hash) != hashLen {
		t.Errorf("Verify = %+v, %v", summary, err)
	}
}
