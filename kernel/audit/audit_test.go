package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// full is an event with every field set.
func full() audit.Event {
	held, receiver := 2, contract.Agent("bob")
	return audit.Event{
		Version: "1", ID: "e1", Type: audit.AuthorizationChecked, Outcome: audit.Denied, At: contract.At(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)),
		TraceID: "t", NamespaceID: "w", Actor: contract.Agent("a"), Authority: contract.Human("h"), Owner: contract.Address{Kind: contract.KindService, ID: "s"}, Purpose: "p",
		Resource: &contract.ResourceRef{Namespace: "files", Path: contract.Path{"Work", "é\"\n"}, Owner: &contract.Address{Kind: contract.KindGroup, ID: "g"}},
		Action:   "read", GrantID: "g", AuthorityHash: "ah", CatalogHash: "ch", OperationID: "o", Tool: "files.read", MessageID: "m", Receiver: &receiver,
		Reason: "no_matching_grant", Cause: "c", Source: audit.SourceKernel, FailClosed: true, Consumed: true, EndedBy: "runtime",
		RequestedAuthority: &contract.CapabilityRequest{
			ID: "r", NamespaceID: "w", Requester: contract.Agent("a"), Owner: contract.Human("h"), Purpose: "p", RequestedAt: contract.At(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)),
			Capabilities: []contract.Capability{{Resource: contract.ResourceRef{Namespace: "files", Path: contract.Path{}}, Actions: []string{"read"}, Scope: contract.ScopeExact}},
		},
		RejectedGrants: []audit.RejectedGrant{{GrantID: "g1", Reason: "window"}, {GrantID: "g2", Reason: "capability"}},
		GrantsResolved: &held, MissingDependency: "usageStore", Metadata: contract.Object(`{"b":1.50,"a":12}`),
	}
}

func TestEventIsCanonicalJSON(t *testing.T) {
	t.Parallel()
	minimal := audit.Event{Version: "1", ID: "e", Type: audit.TurnEnded, Outcome: audit.Succeeded, Actor: contract.Agent("a"), Authority: contract.Human("h"), Owner: contract.Human("h")}
	zero := 0
	none := minimal
	none.GrantsResolved, none.Resource = &zero, &contract.ResourceRef{Namespace: "files", Path: contract.Path{}}
	for name, e := range map[string]audit.Event{"full": full(), "minimal": minimal, "nothing held": none} {
		got, err := e.AppendJSON([]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		for key, value := range fields { // the plain encoder writes empty strings that are left out here
			if string(value) == `""` {
				delete(fields, key)
			}
		}
		want, err := canonical.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("x"+string(want), string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	// Each field of the specification is there.
	e := full()
	line, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(`version id type outcome at traceId namespaceId actor authority owner purpose resource action grantId authorityHash catalogHash
		operationId tool messageId receiver reason cause source failClosed consumed endedBy requestedAuthority rejectedGrants grantsResolved missingDependency metadata`) {
		if !bytes.Contains(line, []byte(`"`+field+`":`)) {
			t.Errorf("%s is not written", field)
		}
	}
}

func TestEventsAlwaysParse(t *testing.T) {
	t.Parallel()
	e := full()
	e.Tool, e.OperationID, e.GrantID, e.RejectedGrants[0].GrantID, e.Resource.Path = "a\xff", "\xc3", "\xed\xa0\x80", "\x80", contract.Path{"\xfe"}
	line, err := e.AppendJSON(nil)
	if err != nil || canonicalOf(t, line) != string(line) {
		t.Errorf("%s, %v", line, err)
	}
	e = full()
	e.Metadata = contract.Object(`{"a":1,"a":2}`)
	if _, err := e.AppendJSON(nil); err == nil {
		t.Error("metadata with two readings was written")
	}
	e = full()
	e.RequestedAuthority = &contract.CapabilityRequest{}
	if _, err := e.AppendJSON(nil); err == nil {
		t.Error("an ask of nobody was written")
	}
}

func canonicalOf(t *testing.T, line []byte) string {
	t.Helper()
	out, err := canonical.Transform(line)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var errSink = errors.New("sink failed")

// brokenWriter fails.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errSink }

func TestWriterWritesOneLineEach(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := audit.NewWriter(&out)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := w.Record(context.Background(), full()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	e := full()
	want, err := e.AppendJSON(nil)
	if err != nil || len(lines) != 20 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, line := range lines {
		if line != string(want) {
			t.Errorf("line %s", line)
		}
	}
	if err := audit.NewWriter(brokenWriter{}).Record(t.Context(), full()); !errors.Is(err, errSink) {
		t.Errorf("a broken writer: %v", err)
	}
	bad := full()
	bad.Metadata = contract.Object(`[`)
	if err := w.Record(t.Context(), bad); err == nil || strings.Count(out.String(), "\n") != 20 {
		t.Errorf("a malformed event: %v", err)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	m := &audit.Memory{}
	if err := m.Record(t.Context(), full()); err != nil {
		t.Fatal(err)
	}
	m.Events()[0].ID = "changed"
	if got := m.Events(); len(got) != 1 || got[0].ID != "e1" {
		t.Errorf("kept %+v", got)
	}
	m.Fail = func(audit.Event) error { return errSink }
	if err := m.Record(t.Context(), full()); !errors.Is(err, errSink) || len(m.Events()) != 1 {
		t.Errorf("a failing sink kept %d events, %v", len(m.Events()), err)
	}
	m.Reset()
	if len(m.Events()) != 0 {
		t.Error("it does not forget")
	}
}

// deferring is a sink that can defer.
type deferring struct {
	audit.Memory
	deferred int
	err      error
}

func (d *deferring) Defer(context.Context, audit.Event) error {
	d.deferred++
	return d.err
}

func TestMulti(t *testing.T) {
	t.Parallel()
	first, second := &audit.Memory{}, &deferring{}
	sinks := []audit.Sink{first, second}
	sink := audit.Multi(sinks...)
	sinks[0] = nil // the caller's slice is its own
	if err := sink.Record(t.Context(), full()); err != nil {
		t.Fatal(err)
	}
	if len(first.Events()) != 1 || len(second.Events()) != 1 {
		t.Errorf("kept %d and %d", len(first.Events()), len(second.Events()))
	}
	d, ok := sink.(audit.Deferrer)
	if !ok {
		t.Fatal("several sinks cannot defer")
	}
	if err := d.Defer(t.Context(), full()); err != nil || len(first.Events()) != 2 || second.deferred != 1 || len(second.Events()) != 1 {
		t.Errorf("deferred: %v, %d and %d", err, len(first.Events()), second.deferred)
	}
	first.Fail = func(audit.Event) error { return errSink }
	if err := sink.Record(t.Context(), full()); !errors.Is(err, errSink) || len(second.Events()) != 2 {
		t.Errorf("one that fails: %v; the other kept %d", err, len(second.Events()))
	}
	if err := d.Defer(t.Context(), full()); !errors.Is(err, errSink) || second.deferred != 2 {
		t.Errorf("one that fails to defer: %v", err)
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("files.read", "a\xff", "Work", []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, tool, id, segment string, metadata []byte) {
		e := full()
		e.Tool, e.OperationID, e.Metadata = tool, id, metadata
		e.Resource.Path = contract.Path{segment}
		line, err := e.AppendJSON(nil)
		if err != nil {
			return
		}
		if got := canonicalOf(t, line); got != string(line) {
			t.Fatalf("%s is not canonical, that is %s", line, got)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	e := full()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.AppendJSON(buf); err != nil {
			b.Fatal(err)
		}
	}
}
