package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/translate"
)

// TestTheLimitsOfRefusals: what the envelope keeps is what the status holds.
func TestTheLimitsOfRefusals(t *testing.T) {
	if v1alpha1.MaxRefusals != envelope.MaxDeniedCalls || v1alpha1.MaxRequiredAuthority != envelope.MaxRequiredAuthority {
		t.Errorf("the API has %d of %d bytes, the envelope %d of %d",
			v1alpha1.MaxRefusals, v1alpha1.MaxRequiredAuthority, envelope.MaxDeniedCalls, envelope.MaxRequiredAuthority)
	}
}

func TestRefusalsThereAndBack(t *testing.T) {
	denied := []envelope.DeniedCall{
		{CallID: "c1", Tool: "files.read", Code: contract.CodeNoMatchingGrant, Required: contract.Object(`{"id":"r"}`)},
		{CallID: "c2", Tool: "files.read", Code: contract.CodeToolCallLimitExceeded},
	}
	listed := translate.Refusals(denied)
	want := []v1alpha1.TurnRefusal{
		{CallID: "c1", Tool: "files.read", Code: contract.CodeNoMatchingGrant, RequiredAuthority: `{"id":"r"}`},
		{CallID: "c2", Tool: "files.read", Code: contract.CodeToolCallLimitExceeded},
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	source := turn()
	source.Status.Admission = &v1alpha1.TurnAdmission{}
	source.Status.Refusals = listed
	if diff := cmp.Diff(denied, translate.Checkpoint(source, nil).Denied); diff != "" {
		t.Errorf("resumed from: -want +got\n%s", diff)
	}
	if got := translate.Refusals(nil); got != nil {
		t.Errorf("of no calls: %v; a status without them must stay as it is", got)
	}
	source.Status.Refusals = nil // as an earlier manager wrote it
	if got := translate.Checkpoint(source, nil).Denied; got != nil {
		t.Errorf("of a status without them: %v", got)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	var denied []envelope.DeniedCall
	for i := range v1alpha1.MaxRefusals + 3 {
		denied = append(denied, envelope.DeniedCall{CallID: fmt.Sprint(i), Code: "c"})
	}
	denied[0] = envelope.DeniedCall{
		CallID: strings.Repeat("é", 300), Tool: "a\xffb" + strings.Repeat("x", 300), Code: strings.Repeat("c", 200),
		Required: contract.Object(`"` + strings.Repeat("r", v1alpha1.MaxRequiredAuthority-1) + `"`),
	}
	got := translate.Refusals(denied)
	if len(got) != v1alpha1.MaxRefusals || got[len(got)-1].CallID != fmt.Sprint(v1alpha1.MaxRefusals-1) {
		t.Fatalf("%d are listed, the last is %q; want the first %d", len(got), got[len(got)-1].CallID, v1alpha1.MaxRefusals)
	}
	first := got[0]
	if n := len([]rune(first.CallID)); n != contract.MaxIdentifier {
		t.Errorf("the call's id has %d characters", n)
	}
	if n := len([]rune(first.Tool)); n != contract.MaxIdentifier || !strings.HasPrefix(first.Tool, "a\uFFFDb") {
		t.Errorf("the tool's name has %d characters: %q", n, first.Tool)
	}
	if n := len([]rune(first.Code)); n != contract.MaxCode || first.RequiredAuthority != "" {
		t.Errorf("the code has %d characters, %d bytes are required", n, len(first.RequiredAuthority))
	}
}
