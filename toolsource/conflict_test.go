package toolsource_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/toolsource"
)

// TestTwoSourcesWithOneName: neither is chosen. Both are told, and a turn that has both
// gets no tools at all; one that has one of them is not affected.
func TestTwoSourcesWithOneName(t *testing.T) {
	t.Parallel()
	one, two := namespace("wiki", plane(v1alpha1.PlaneFiles)), namespace("docs", plane(v1alpha1.PlaneFiles))
	one.UID, two.UID = types.UID("one"), types.UID("two")
	for _, n := range []*v1alpha1.ToolNamespace{one, two} {
		n.Spec.Enabled = true
	}
	all := []v1alpha1.ToolNamespace{*one, *two}
	for i := range all {
		other := all[1-i].Name
		if got := toolsource.Conflict(&all[i], all); !strings.Contains(got, `"`+other+`"`) || !strings.Contains(got, "files.") {
			t.Errorf("%s: %q", all[i].Name, got)
		}
	}
	if got, err := tools(t, "", []string{"wiki", "docs"}, one, two); !errors.Is(err, toolsource.ErrNameConflict) || got != nil {
		t.Errorf("%d tools, %v", len(got), err)
	}
	if got, err := tools(t, "", []string{"docs"}, one, two); err != nil || len(got) != 12 {
		t.Errorf("of one: %d tools, %v", len(got), err)
	}
	all[1].Spec.Enabled = false
	if got := toolsource.Conflict(&all[0], all); got != "" {
		t.Errorf("with one that is off: %q", got)
	}
	brokeredOnes := brokered(declared("wiki.read", "get", ""))
	brokeredOnes.UID, brokeredOnes.Spec.Enabled = "three", true
	if got := toolsource.Conflict(one, []v1alpha1.ToolNamespace{*brokeredOnes}); got != "" {
		t.Errorf("different names: %q", got)
	}
}
