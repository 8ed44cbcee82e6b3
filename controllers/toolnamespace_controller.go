package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/toolsource"
	"github.com/sharedos-dev/operator/translate"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=toolnamespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups=sharedos.dev,resources=toolnamespaces/status,verbs=get;update;patch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get

// ToolNamespaceReconciler shows what a ToolNamespace offers and whether its source
// can be used.
type ToolNamespaceReconciler struct {
	Client      client.Client
	Connections *toolsource.Connections
}

// probeEvery is how often the provider of a source that works is tried.
const probeEvery = time.Minute

// SetupWithManager registers the controller.
func (r *ToolNamespaceReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("toolnamespace").For(&v1alpha1.ToolNamespace{}).Complete(r)
}

// Reconcile looks at one ToolNamespace.
func (r *ToolNamespaceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	n := &v1alpha1.ToolNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, n); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := n.DeepCopy()
	var fault error
	if n.Spec.Source.Provider != nil {
		fault = r.Connections.Probe(ctx, n)
	} else if n.Spec.Source.MCP != nil {
		fault = toolsource.ErrUnsupported
	}
	if err := judgeToolNamespace(n, fault); err != nil {
		return ctrl.Result{}, err
	}
	n.Status.ObservedGeneration = n.Generation
	result, err := requeueOnConflict(patchStatus(ctx, r.Client, before, n, before.Status, n.Status))
	if err == nil && result.RequeueAfter == 0 && n.Spec.Source.Provider != nil {
		result.RequeueAfter = probeEvery // nobody says when a provider comes or goes
		if fault != nil {
			result.RequeueAfter = pendingEvery
		}
	}
	return result, err
}

// judgeToolNamespace fills the status from the spec and from what connecting said.
func judgeToolNamespace(n *v1alpha1.ToolNamespace, fault error) error {
	tools, err := toolStatuses(n)
	if err != nil {
		return err
	}
	n.Status.Tools = tools
	n.Status.ToolCount = new(int32(len(tools))) //nolint:gosec // twelve at most
	n.Status.Sources = []v1alpha1.Identifier{"sharedos"}
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
		v1alpha1.SetCondition(&n.Status.Conditions, v1alpha1.Condition(kind, status, reason, translate.Text(message, maxMessage), n.Generation))
	}
	switch {
	case translate.Reserved(n):
		condition(v1alpha1.ToolNamespaceReady, metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonSourceUnavailable,
			fmt.Sprintf("metadata.name: %q belongs to a built-in family; choose another name or set spec.source.builtin", n.Name))
		return nil
	case fault != nil:
		reason := v1alpha1.ToolNamespaceReasonConnectionFailed
		if errors.Is(fault, toolsource.ErrCredentials) {
			reason = v1alpha1.ToolNamespaceReasonCredentialsNotFound
		}
		condition(v1alpha1.ToolNamespaceConnected, metav1.ConditionFalse, reason, fault.Error())
		condition(v1alpha1.ToolNamespaceReady, metav1.ConditionFalse, v1alpha1.ToolNamespaceReasonSourceUnavailable, fault.Error())
		return nil
	}
	condition(v1alpha1.ToolNamespaceConnected, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonConnected, "the source was reached")
	message := fmt.Sprintf("%d tools", len(tools))
	if !n.Spec.Enabled {
		message += "; spec.enabled is false, so no turn is offered them"
	}
	condition(v1alpha1.ToolNamespaceReady, metav1.ConditionTrue, v1alpha1.ToolNamespaceReasonAvailable, message)
	return nil
}

// toolStatuses lists the tools of a source that is known without asking it.
func toolStatuses(n *v1alpha1.ToolNamespace) ([]v1alpha1.ToolStatus, error) {
	var out []v1alpha1.ToolStatus
	for _, tool := range toolsource.Plane(n, nil) {
		digest, err := canonical.Hash(tool.Definition.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("hash the schema of %q: %w", tool.Definition.Name, err)
		}
		out = append(out, v1alpha1.ToolStatus{
			Name: v1alpha1.ToolName(tool.Definition.Name), SchemaDigest: v1alpha1.Digest(digest), Published: true, Reason: v1alpha1.ToolPublished,
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
