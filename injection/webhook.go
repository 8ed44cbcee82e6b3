package injection

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Authorizer says whether a user may use a Principal.
type Authorizer interface {
	MayUse(ctx context.Context, user authenticationv1.UserInfo, namespace, principal string) (bool, error)
}

// Webhook is the mutating admission handler for pods that carry the Turn label. It
// writes nothing; whatever it cannot establish is refused.
type Webhook struct {
	// Reader reads Turns, Principals and Harnesses from the API server itself: a
	// cache may not know yet what was applied a moment before the pod.
	Reader client.Reader
	// Cache may know the Turn already, which saves time and decides nothing. It may be
	// nil.
	Cache client.Reader
	// Config is the present configuration of every sidecar.
	Config func() (Config, error)
	// Authorizer decides about pods that somebody else brings.
	Authorizer Authorizer
	// ManagerUser is the user name that makes the pods of Harnesses.
	ManagerUser string
	Decoder     admission.Decoder
}

// turnLabel is the field that every refusal about the Turn names.
var turnLabel = field.NewPath("metadata", "labels").Key(v1alpha1.LabelTurn)

// Handle implements [admission.Handler].
func (w *Webhook) Handle(ctx context.Context, req admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := w.Decoder.Decode(req, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode pod: %w", err))
	}
	cfg, err := w.Config()
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the bridge is not configured yet: %w", err))
	}
	target, refusal, err := w.target(ctx, req, pod)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case refusal != nil:
		return admission.Denied(refusal.Error())
	}
	if errs := Check(pod, cfg, target); len(errs) > 0 {
		return admission.Denied(errs.ToAggregate().Error())
	}
	Mutate(pod, cfg, target)
	raw, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encode pod: %w", err))
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

// target finds the pod's Turn and checks that this pod may run for it.
func (w *Webhook) target(ctx context.Context, req admission.Request, pod *corev1.Pod) (Target, *field.Error, error) {
	name := types.NamespacedName{Namespace: req.Namespace, Name: pod.Labels[v1alpha1.LabelTurn]}
	if name.Name == "" {
		return Target{}, field.NotFound(turnLabel, name.Name), nil
	}
	// Everything that is asked follows from the Turn's spec, which cannot be changed. So
	// it is asked for the Turn that the cache knows while the Turn itself is read.
	var ahead *findings
	var wg sync.WaitGroup
	guess := w.guess(ctx, name)
	if guess != nil {
		wg.Go(func() { ahead = w.find(ctx, req, pod, guess) })
	}
	turn := &v1alpha1.Turn{}
	err := w.Reader.Get(ctx, name, turn)
	wg.Wait()
	switch {
	case apierrors.IsNotFound(err):
		return Target{}, field.NotFound(turnLabel, name.Name), nil
	case err != nil:
		return Target{}, nil, fmt.Errorf("get turn %q: %w", name.Name, err)
	}
	if refusal := standing(turn, name.Name); refusal != nil {
		return Target{}, refusal, nil
	}
	if ahead == nil || guess.UID != turn.UID {
		ahead = w.find(ctx, req, pod, turn)
	}
	refusal, err := ahead.first()
	return Target{Turn: name.Name, Harness: ahead.harness}, refusal, err
}

// guessTime is the longest that a cache may take which is still being filled.
const guessTime = 20 * time.Millisecond

// guess is the Turn as the cache has it, if it does.
func (w *Webhook) guess(ctx context.Context, name types.NamespacedName) *v1alpha1.Turn {
	ctx, cancel := context.WithTimeout(ctx, guessTime)
	defer cancel()
	turn := &v1alpha1.Turn{}
	if w.Cache == nil || w.Cache.Get(ctx, name, turn) != nil {
		return nil
	}
	return turn
}

// findings are the answers to what is asked about a pod and its Turn.
type findings struct {
	bring, runAs       *field.Error
	bringErr, runAsErr error
	harness            string
	harnessErr         error
}

// find asks everything at once.
func (w *Webhook) find(ctx context.Context, req admission.Request, pod *corev1.Pod, turn *v1alpha1.Turn) *findings {
	var out findings
	var wg sync.WaitGroup
	wg.Go(func() { out.bring, out.bringErr = w.mayBring(ctx, req, pod, turn) })
	wg.Go(func() { out.runAs, out.runAsErr = w.mayRunAs(ctx, pod, turn) })
	out.harness, out.harnessErr = w.harnessType(ctx, turn)
	wg.Wait()
	return &out
}

// first is the first refusal or error, in the order in which they matter to whoever
// made the pod.
func (f *findings) first() (*field.Error, error) {
	switch {
	case f.bringErr != nil || f.bring != nil:
		return f.bring, f.bringErr
	case f.runAsErr != nil || f.runAs != nil:
		return f.runAs, f.runAsErr
	default:
		return nil, f.harnessErr
	}
}

// standing refuses a Turn that takes no pod any more.
func standing(turn *v1alpha1.Turn, name string) *field.Error {
	switch {
	case turn.IsFinished() || !turn.DeletionTimestamp.IsZero():
		return field.Invalid(turnLabel, name, "the Turn has ended; create another Turn")
	case turn.Status.Pod != nil:
		return field.Invalid(turnLabel, name, fmt.Sprintf("the Turn is bound to the pod %q; create another Turn", turn.Status.Pod.Name))
	}
	return nil
}

// mayBring decides who may create the pod: the manager for a Turn with a Harness;
// else the object that the Turn names, or a user who may use the Principal.
func (w *Webhook) mayBring(ctx context.Context, req admission.Request, pod *corev1.Pod, turn *v1alpha1.Turn) (*field.Error, error) {
	if turn.Spec.Harness != "" {
		if req.UserInfo.Username == w.ManagerUser {
			return nil, nil
		}
		return field.Invalid(turnLabel, turn.Name, "the Turn's pod is made from its Harness by the manager; remove the label"), nil
	}
	if external := turn.Spec.ExternalPod; external != nil {
		if owner := metav1.GetControllerOf(pod); owner != nil && string(owner.UID) == string(external.OwnerUID) {
			return nil, nil
		}
		return field.Forbidden(field.NewPath("metadata", "ownerReferences"),
			fmt.Sprintf("the Turn takes only a pod controlled by the object with UID %q (spec.externalPod.ownerUID)", external.OwnerUID)), nil
	}
	allowed, err := w.Authorizer.MayUse(ctx, req.UserInfo, turn.Namespace, string(turn.Spec.Principal))
	if err != nil {
		return nil, fmt.Errorf("check the verb %s on principal %q: %w", v1alpha1.VerbUse, turn.Spec.Principal, err)
	}
	if !allowed {
		return field.Forbidden(turnLabel, fmt.Sprintf(
			"user %q may not use the principal %q; bind a role with the verb %s on it, or name the pod's owner in the Turn's spec.externalPod",
			req.UserInfo.Username, turn.Spec.Principal, v1alpha1.VerbUse)), nil
	}
	return nil, nil
}

// mayRunAs holds a pod to the ServiceAccounts that its Principal lists.
func (w *Webhook) mayRunAs(ctx context.Context, pod *corev1.Pod, turn *v1alpha1.Turn) (*field.Error, error) {
	principal := &v1alpha1.Principal{}
	err := w.Reader.Get(ctx, types.NamespacedName{Namespace: turn.Namespace, Name: string(turn.Spec.Principal)}, principal)
	if apierrors.IsNotFound(err) {
		return nil, nil // such a Turn is never admitted
	}
	if err != nil {
		return nil, fmt.Errorf("get principal %q: %w", turn.Spec.Principal, err)
	}
	var accounts []string
	for _, identity := range principal.Spec.Identities {
		if sa := identity.ServiceAccount; sa != nil && string(sa.Namespace) == turn.Namespace {
			accounts = append(accounts, string(sa.Name))
		}
	}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	if len(accounts) == 0 || slices.Contains(accounts, account) {
		return nil, nil
	}
	return field.NotSupported(field.NewPath("spec", "serviceAccountName"), account, accounts), nil
}

// harnessType decides the connection file; a pod brought by somebody else gets the
// common one.
func (w *Webhook) harnessType(ctx context.Context, turn *v1alpha1.Turn) (string, error) {
	if turn.Spec.Harness == "" {
		return string(v1alpha1.HarnessCustom), nil
	}
	harness := &v1alpha1.Harness{}
	if err := w.Reader.Get(ctx, types.NamespacedName{Namespace: turn.Namespace, Name: string(turn.Spec.Harness)}, harness); err != nil {
		return "", fmt.Errorf("get harness %q: %w", turn.Spec.Harness, err)
	}
	return string(harness.Spec.Type), nil
}
