package toolsource

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
	"github.com/sharedos-dev/operator/upstream"
)

// Look is what a look at a source found.
type Look struct {
	// Fault is why the source cannot be used.
	Fault error
	// Binding is an mcp source's, and At when its server was asked.
	Binding *Binding
	At      metav1.Time
	// Conflict is what [Conflict] answers.
	Conflict string
}

// Judge fills the status from the spec and from what a look at the source found. After
// a fault the tools stay as they were found last.
func Judge(n *v1alpha1.ToolNamespace, look *Look) error {
	if err := judgeTools(n, look); err != nil {
		return err
	}
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
		v1alpha1.SetCondition(&n.Status.Conditions, v1alpha1.Condition(kind, status, reason, translate.Text(message, translate.MaxMessage), n.Generation))
	}
	ready := func(status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
		condition(v1alpha1.ToolNamespaceReady, status, reason, message)
	}
	if translate.Reserved(n) {
		ready(metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonSourceUnavailable,
			fmt.Sprintf("metadata.name: %q belongs to a built-in family; choose another name or set spec.source.builtin", n.Name))
		return nil
	}
	if errors.Is(look.Fault, upstream.ErrTooManyTools) {
		condition(v1alpha1.ToolNamespaceConnected, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonConnected, "the source was reached")
		ready(metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonTooManyTools, look.Fault.Error())
		return nil
	}
	if look.Fault != nil {
		condition(v1alpha1.ToolNamespaceConnected, metav1.ConditionFalse, faultReason(look.Fault), look.Fault.Error())
		ready(metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonSourceUnavailable, look.Fault.Error())
		return nil //nolint:nilerr // as above
	}
	condition(v1alpha1.ToolNamespaceConnected, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonConnected, "the source was reached")
	if look.Conflict != "" {
		ready(metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonNameConflict, look.Conflict)
		return nil
	}
	reason, message := publication(n)
	if !n.Spec.Enabled {
		message += "; spec.enabled is false, so no turn is offered them"
	}
	ready(metav1.ConditionTrue, reason, message)
	return nil
}

// publication says how much of what was declared is published.
func publication(n *v1alpha1.ToolNamespace) (v1alpha1.ConditionReason, string) {
	published, withheld, warned := 0, 0, 0
	for i := range n.Status.Tools {
		switch t := &n.Status.Tools[i]; {
		case t.Published && t.Message != "":
			published++
			warned++
		case t.Published:
			published++
		case t.Reason != v1alpha1.ToolNotDeclared:
			withheld++
		}
	}
	message := fmt.Sprintf("%d tools", published)
	if warned > 0 {
		message += fmt.Sprintf("; %d of them with a name that is too long for some harnesses, see status.tools", warned)
	}
	if withheld > 0 {
		return v1alpha1.ToolNamespaceReasonPartlyPublished, fmt.Sprintf("%s; %d more are declared and withheld, see status.tools", message, withheld)
	}
	return v1alpha1.ToolNamespaceReasonAvailable, message
}

// Conflict names another enabled ToolNamespace and the tool that both have; it is empty
// when there is none.
func Conflict(n *v1alpha1.ToolNamespace, others []v1alpha1.ToolNamespace) string {
	mine := declaredNames(n)
	for i := range others {
		other := &others[i]
		if other.UID == n.UID || !other.Spec.Enabled {
			continue
		}
		for _, name := range declaredNames(other) {
			if slices.Contains(mine, name) {
				return fmt.Sprintf("%s is also a tool of the ToolNamespace %q; rename one", name, other.Name)
			}
		}
	}
	return ""
}

func declaredNames(n *v1alpha1.ToolNamespace) []string {
	plane := Plane(n, nil)
	out := make([]string, 0, len(plane)+len(n.Spec.Tools))
	for i := range plane {
		out = append(out, plane[i].Definition.Name)
	}
	for i := range n.Spec.Tools {
		out = append(out, string(n.Spec.Tools[i].Name))
	}
	return out
}

// faultReason names why a source cannot be used.
func faultReason(fault error) v1alpha1.ConditionReason {
	_, refused := errors.AsType[*egress.RefusedError](fault)
	switch {
	case errors.Is(fault, ErrCredentials):
		return v1alpha1.ToolNamespaceReasonCredentialsNotFound
	case errors.Is(fault, ErrMaterial), errors.Is(fault, ErrClearText), errors.Is(fault, upstream.ErrCredentials):
		return v1alpha1.ToolNamespaceReasonCredentialsInvalid
	case refused:
		return v1alpha1.ToolNamespaceReasonAddressRefused
	case errors.Is(fault, upstream.ErrDiscovery):
		return v1alpha1.ToolNamespaceReasonDiscoveryFailed
	default:
		return v1alpha1.ToolNamespaceReasonConnectionFailed
	}
}

// judgeTools fills in the tools.
func judgeTools(n *v1alpha1.ToolNamespace, look *Look) error {
	if n.Spec.Source.MCP != nil {
		n.Status.Sources = []v1alpha1.Identifier{SourceMCP}
		if look.Binding != nil {
			n.Status.Tools = look.Binding.Statuses
			n.Status.LastDiscovered = &look.At
		}
	} else {
		n.Status.Sources = []v1alpha1.Identifier{"sharedos"}
		tools, err := toolStatuses(n)
		if err != nil {
			return err
		}
		n.Status.Tools = tools
	}
	published := int32(0)
	for i := range n.Status.Tools {
		if n.Status.Tools[i].Published {
			published++
		}
	}
	n.Status.ToolCount = &published
	return nil
}

// toolStatuses lists the tools of a source that is known without asking it.
func toolStatuses(n *v1alpha1.ToolNamespace) ([]v1alpha1.ToolStatus, error) {
	var out []v1alpha1.ToolStatus
	for _, tool := range Plane(n, nil) {
		digest, err := canonical.Hash(tool.Definition.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("hash the schema of %q: %w", tool.Definition.Name, err)
		}
		out = append(out, v1alpha1.ToolStatus{
			Name: v1alpha1.ToolName(tool.Definition.Name), SchemaDigest: v1alpha1.Digest(digest), Published: true, Reason: v1alpha1.ToolPublished,
			Message: AliasWarning(tool.Definition.Name),
		})
	}
	switch n.Spec.Source.Builtin {
	case v1alpha1.BuiltinSharedOS:
		out = append(out, v1alpha1.ToolStatus{Name: contract.EscalateTool, Published: true, Reason: v1alpha1.ToolPublished})
	case v1alpha1.BuiltinMessages:
		out = append(out, v1alpha1.ToolStatus{Name: contract.MessagesRequestTool, Published: true, Reason: v1alpha1.ToolPublished})
	}
	return out, nil
}
