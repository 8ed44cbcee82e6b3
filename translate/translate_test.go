package translate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/translate"
)

func principal(name string, change ...func(*v1alpha1.Principal)) v1alpha1.Principal {
	p := v1alpha1.Principal{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PrincipalSpec{Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, name), Purposes: []v1alpha1.Purpose{"first", "second"}},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestIdentity(t *testing.T) {
	twin := func(p *v1alpha1.Principal) { p.Spec.Address = v1alpha1.NewAddress(v1alpha1.AddressAgent, "twin") }
	d := translate.NewDirectory([]v1alpha1.Principal{
		principal("alice"), principal("t1", twin), principal("t2", twin),
		principal("bot", func(p *v1alpha1.Principal) { p.Spec.Authority, p.Spec.Owner = "alice", "alice" }),
		principal("lost", func(p *v1alpha1.Principal) { p.Spec.Authority = "nobody" }),
		principal("entwined", func(p *v1alpha1.Principal) { p.Spec.Owner = "t1" }),
	})
	id, err := d.Identity("bot")
	if err != nil || id.Actor != contract.Agent("bot") || id.Authority != contract.Agent("alice") || id.Owner != contract.Agent("alice") {
		t.Errorf("%+v %v", id, err)
	}
	if id, err := d.Identity("alice"); err != nil || id.Authority != id.Actor || id.Owner != id.Actor {
		t.Errorf("a Principal that names nobody else: %+v %v", id, err)
	}
	for name, want := range map[string]error{
		"nobody": translate.ErrPrincipalNotFound, "lost": translate.ErrPrincipalNotFound,
		"t1": translate.ErrDuplicateAddress, "entwined": translate.ErrDuplicateAddress,
	} {
		if _, err := d.Identity(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	for asked, want := range map[v1alpha1.Purpose]string{"": "first", "second": "second", "third": ""} {
		if got, err := id.Purpose(asked); got != want || (err == nil) != (want != "") {
			t.Errorf("purpose %q: %q %v, want %q", asked, got, err, want)
		}
	}
}

func TestEnabledToolNamespaces(t *testing.T) {
	bot := principal("bot", func(p *v1alpha1.Principal) {
		p.Labels = map[string]string{"team": "atlas"}
		p.Spec.DisabledToolNamespaces = []v1alpha1.LabelName{"narrowed"}
	})
	namespace := func(name string, change func(*v1alpha1.ToolNamespaceSpec)) v1alpha1.ToolNamespace {
		n := v1alpha1.ToolNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true, Source: v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{Plane: v1alpha1.PlaneFiles}},
		}}
		if change != nil {
			change(&n.Spec)
		}
		return n
	}
	selecting := func(s v1alpha1.PrincipalSelector) func(*v1alpha1.ToolNamespaceSpec) {
		return func(n *v1alpha1.ToolNamespaceSpec) { n.PrincipalSelector = &s }
	}
	got, err := translate.EnabledToolNamespaces([]v1alpha1.ToolNamespace{
		namespace("on", nil), namespace("off", func(n *v1alpha1.ToolNamespaceSpec) { n.Enabled = false }), namespace("narrowed", nil),
		namespace("named", selecting(v1alpha1.PrincipalSelector{Names: []v1alpha1.ObjectName{"bot"}})),
		namespace("others", selecting(v1alpha1.PrincipalSelector{Names: []v1alpha1.ObjectName{"alice"}})),
		namespace("labelled", selecting(v1alpha1.PrincipalSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": "atlas"}})),
		namespace("unlabelled", selecting(v1alpha1.PrincipalSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": "borealis"}})),
		namespace("sharedos", nil), // not the built-in family, so it must not switch that on
		namespace("asking", func(n *v1alpha1.ToolNamespaceSpec) { n.Source = v1alpha1.ToolSource{Builtin: v1alpha1.BuiltinMessages} }),
	}, &bot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"labelled", "messages", "named", "on"}, got); diff != "" {
		t.Errorf("enabled (-want +got):\n%s", diff)
	}
}

func turn() *v1alpha1.Turn {
	return &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "turn-uid", CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000, 0))},
		Spec: v1alpha1.TurnSpec{
			Principal: "bot",
			Message:   v1alpha1.TurnMessage{Payload: `{"orderId":9007199254740993}`},
			State:     `{"step":1e400}`,
		},
	}
}

func parties() translate.Parties {
	return translate.Parties{
		Identity: translate.Identity{Actor: contract.Agent("bot"), Authority: contract.Human("alice"), Owner: contract.Human("alice")},
		Sender:   contract.Human("alice"), Purpose: "first", Enabled: []string{"files"},
		Options: v1alpha1.ExecutionOptions{TimeoutMs: new(int64(60000))},
	}
}

func TestRequestKeepsEveryDigit(t *testing.T) {
	source := turn()
	source.Spec.State = `{"step":1}`
	req, err := translate.Request(source, parties(), time.Unix(1_800_000_001, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := req.Validate(); err != nil {
		t.Fatalf("the envelope would refuse it: %v", err)
	}
	if string(req.Message.Payload) != `{"orderId":9007199254740993}` || req.ExecutionID != "turn-uid" || req.Message.Purpose != "first" {
		t.Errorf("request %+v", req)
	}
	if req.Tools != nil {
		t.Error("no tools were named, so every allowed one is meant")
	}
	source.Spec.Tools = []v1alpha1.ToolName{}
	if req, err := translate.Request(source, parties(), time.Now()); err != nil || req.Tools == nil {
		t.Errorf("an empty list means none: %v %v", req.Tools, err)
	}
	for _, bad := range []v1alpha1.JSONText{`{`, `{"a":1,"a":2}`, `1 2`} {
		source.Spec.Message.Payload = bad
		if _, err := translate.Request(source, parties(), time.Now()); err == nil || !strings.Contains(err.Error(), "spec.message.payload") {
			t.Errorf("payload %s: %v, want an error that names the field", bad, err)
		}
	}
}

// TestReadmission: what is stored of an admission is enough to rebuild it.
func TestReadmission(t *testing.T) {
	source, p := turn(), parties()
	source.Spec.State = ""
	at := time.Unix(1_800_000_001, 123_456_000)
	req, err := translate.Request(source, p, at)
	if err != nil {
		t.Fatal(err)
	}
	source.Status.Admission = translate.Admission(envelope.Admission{
		At: req.Context.Now, AuthorityHash: "a", CatalogHash: "c", ToolCount: 2,
	}, req.Context, p.Options, []v1alpha1.GrantReference{{Name: "g", UID: "u", Generation: 3}}, "policy")
	again, when, ok := translate.Readmission(source, p.Sender)
	if !ok {
		t.Fatal("the admission cannot be rebuilt")
	}
	rebuilt, err := translate.Request(source, again, when)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(req, rebuilt); diff != "" {
		t.Errorf("the request (-admitted +rebuilt):\n%s", diff)
	}
	deadline := metav1.NewMicroTime(at.Add(time.Minute))
	source.Status.Admission.Deadline = &deadline
	source.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.TurnConditionBridgeReady), Status: metav1.ConditionTrue}}
	source.Status.Usage = &v1alpha1.TurnUsage{ToolCalls: 4, Denied: 1}
	source.Status.Checkpoint = &v1alpha1.TurnCheckpoint{ToolCalls: 5, Denied: 2, Steps: 2, NextSequence: 9, Effects: true}
	point := translate.Checkpoint(source, []kernel.GrantRef{{ID: "g", Hash: "h"}})
	if point.StartedAt == nil || !point.StartedAt.Equal(at) {
		t.Errorf("started at %v, want a minute before the deadline", point.StartedAt)
	}
	if point.Usage.ToolCalls != 5 || point.Usage.Denied != 2 || !point.Unsafe || point.NextSequence != 9 || len(point.Steps) != 2 {
		t.Errorf("counters %+v", point)
	}
}

func TestMakeOutput(t *testing.T) {
	small := translate.MakeOutput([]byte("hi"), 2, "", v1alpha1.OutputText)
	if small.Output == nil || *small.Output != "hi" || small.Stored != nil || small.OutputTruncated || len(small.OutputSHA256) != 64 {
		t.Errorf("small: %+v", small)
	}
	large := translate.MakeOutput(make([]byte, v1alpha1.MaxInlineOutput+1), v1alpha1.MaxInlineOutput+1, "", v1alpha1.OutputText)
	if large.Output != nil || len(large.Stored) != v1alpha1.MaxInlineOutput+1 || large.OutputTruncated {
		t.Errorf("large: inline %t, %d stored, truncated %t", large.Output != nil, len(large.Stored), large.OutputTruncated)
	}
	huge := translate.MakeOutput(make([]byte, v1alpha1.MaxReferencedOutput), 5<<20, "sum", v1alpha1.OutputText)
	if len(huge.Stored) != v1alpha1.MaxReferencedOutput || !huge.OutputTruncated || *huge.OutputSize != 5<<20 || huge.OutputSHA256 != "sum" {
		t.Errorf("huge: %d stored, truncated %t, size %d", len(huge.Stored), huge.OutputTruncated, *huge.OutputSize)
	}
	if binary := translate.MakeOutput([]byte{0xff}, 1, "", v1alpha1.OutputText); binary.Output != nil || len(binary.Stored) != 1 {
		t.Errorf("what is not text goes beside the status: %+v", binary)
	}
}
