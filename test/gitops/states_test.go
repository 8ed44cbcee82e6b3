package gitops

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/sharedos-dev/operator/api/v1alpha1"
)

// The words of Argo CD.
const (
	healthy, progressing, degraded, suspended = "Healthy", "Progressing", "Degraded", "Suspended"
)

// generation of every object; before is one that is over.
const generation, before = 3, 2

// state is an object's telling condition, and what the tools make of it.
type state struct {
	kind      string
	condition api.ConditionType
	status    metav1.ConditionStatus
	reason    api.ConditionReason
	argo      string
	flux      status.Status // with the expressions of config/flux
	plain     status.Status // kstatus alone
}

func (s state) String() string { return s.kind + "/" + string(s.reason) }

const (
	current, failed, inProgress = status.CurrentStatus, status.FailedStatus, status.InProgressStatus

	yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
)

// states is every state that an object can be in.
var states = slices.Concat(
	ready("Principal", yes, healthy, current, current, api.PrincipalReasonResolved),
	ready("Principal", no, degraded, failed, inProgress, api.PrincipalReasonDuplicateAddress, api.PrincipalReasonDuplicateIdentity),
	ready("Principal", no, degraded, inProgress, inProgress, api.PrincipalReasonAuthorityNotFound,
		api.PrincipalReasonOwnerNotFound, api.PrincipalReasonHarnessNotFound),
	ready("Principal", unknown, progressing, inProgress, inProgress, api.PrincipalReasonPending),

	ready("Grant", yes, healthy, current, current, api.GrantReasonActive),
	ready("Grant", no, degraded, inProgress, inProgress, api.GrantReasonPrincipalNotFound, api.GrantReasonParentNotFound),
	ready("Grant", no, degraded, failed, inProgress, api.GrantReasonDelegationInvalid),
	ready("Grant", no, suspended, current, inProgress,
		api.GrantReasonExpired, api.GrantReasonNotYetActive, api.GrantReasonRevoked, api.GrantReasonExhausted),
	ready("Grant", unknown, progressing, inProgress, inProgress, api.GrantReasonPending),

	ready("ToolNamespace", yes, healthy, current, current, api.ToolNamespaceReasonAvailable, api.ToolNamespaceReasonPartlyPublished),
	ready("ToolNamespace", no, degraded, inProgress, inProgress, api.ToolNamespaceReasonSourceUnavailable),
	ready("ToolNamespace", no, degraded, failed, inProgress,
		api.ToolNamespaceReasonTooManyTools, api.ToolNamespaceReasonNameConflict, api.ToolNamespaceReasonSelectorInvalid),
	ready("ToolNamespace", unknown, progressing, inProgress, inProgress, api.ToolNamespaceReasonPending),

	ready("Harness", yes, healthy, current, current, api.HarnessReasonValid),
	ready("Harness", no, degraded, failed, inProgress, api.HarnessReasonContainerMissing, api.HarnessReasonCommandMissing,
		api.HarnessReasonTemplateForbidden, api.HarnessReasonTemplateInvalid),
	ready("Harness", unknown, progressing, inProgress, inProgress, api.HarnessReasonPending),

	finished(no, progressing, inProgress, api.TurnStatePending, api.TurnStateAdmitted, api.TurnStateRunning),
	finished(yes, healthy, current, api.TurnStateSucceeded),
	finished(yes, suspended, current, api.TurnStateEscalated),
	finished(yes, degraded, failed, api.TurnStateDenied, api.TurnStateFailed, api.TurnStateCancelled),
)

func ready(kind string, is metav1.ConditionStatus, argo string, flux, plain status.Status, reasons ...api.ConditionReason) []state {
	out := make([]state, 0, len(reasons))
	for _, reason := range reasons {
		out = append(out, state{kind, "Ready", is, reason, argo, flux, plain})
	}
	return out
}

// finished is a Turn's. kstatus knows no condition Finished: to it an object that was
// looked at is current, as a Job that runs is.
func finished(is metav1.ConditionStatus, argo string, flux status.Status, reasons ...api.ConditionReason) []state {
	out := ready("Turn", is, argo, flux, current, reasons...)
	for i := range out {
		out[i].condition = api.TurnConditionFinished
	}
	return out
}

// object is an object of a kind with a condition that was set at a generation. Without
// a condition it is one that no manager has looked at.
func object(t *testing.T, kind string, observed int64, conditions ...metav1.Condition) *unstructured.Unstructured {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "team", Name: "it", Generation: generation}
	var typed any
	switch kind {
	case "Principal":
		typed = &api.Principal{ObjectMeta: meta, Status: api.PrincipalStatus{ObservedGeneration: observed, Conditions: conditions}}
	case "Grant":
		typed = &api.Grant{ObjectMeta: meta, Status: api.GrantStatus{ObservedGeneration: observed, Conditions: conditions}}
	case "ToolNamespace":
		typed = &api.ToolNamespace{ObjectMeta: meta, Status: api.ToolNamespaceStatus{ObservedGeneration: observed, Conditions: conditions}}
	case "Harness":
		typed = &api.Harness{ObjectMeta: meta, Status: api.HarnessStatus{ObservedGeneration: observed, Conditions: conditions}}
	case "Turn":
		typed = &api.Turn{ObjectMeta: meta, Status: api.TurnStatus{ObservedGeneration: observed, Conditions: conditions}}
	default:
		t.Fatalf("no kind %q", kind)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = api.GroupVersion.String(), kind
	return &unstructured.Unstructured{Object: content}
}

// in is an object in a state, looked at in a generation.
func (s state) in(t *testing.T, observed int64) *unstructured.Unstructured {
	t.Helper()
	c := api.Condition(s.condition, s.status, s.reason, "because", observed)
	c.LastTransitionTime = metav1.Now()
	return object(t, s.kind, observed, c)
}

// kinds that have a health.
func kinds() []string { return []string{"Principal", "Grant", "ToolNamespace", "Harness", "Turn"} }

// TestEveryStateIsHere compares the table with the reference, which is made from the
// constants: a new reason has to say what the tools make of it.
func TestEveryStateIsHere(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reference/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	telling := regexp.MustCompile("(?s)^Reasons of `(?:Ready|Finished)` .*?\n\n(.*)$|^Reasons of `Ready` and `Connected` .*?\n\n(.*)$")
	reason := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")
	var want []string
	for section := range strings.SplitSeq(string(raw), "\n## ") {
		kind, _, _ := strings.Cut(section, "\n")
		if !slices.Contains(kinds(), kind) {
			continue
		}
		for part := range strings.SplitSeq(section, "\nReasons of ") {
			if telling.MatchString("Reasons of " + part) {
				for _, m := range reason.FindAllStringSubmatch(part, -1) {
					want = append(want, kind+"/"+m[1])
				}
			}
		}
	}
	var got []string
	for _, s := range states {
		got = append(got, s.String())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-reference +table):\n%s", diff)
	}
}
