package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/sessions"
)

//+kubebuilder:rbac:groups=sharedos.dev,resources=turns,verbs=get;list;watch;create;update;patch;delete
//+kubebuilder:rbac:groups=sharedos.dev,resources=turns/status,verbs=get;update;patch
//+kubebuilder:rbac:groups=sharedos.dev,resources=turns/finalizers,verbs=update
//+kubebuilder:rbac:groups="",resources=pods;configmaps,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
//+kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
//+kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Times of a running turn.
const (
	// pendingEvery is how often a pod that could not be made is tried again: what was
	// in its way, a quota for instance, tells nobody when it goes.
	pendingEvery = 5 * time.Second
	// progressEvery is how often a running turn's counters are stored, unless something
	// else is stored of it.
	progressEvery = 5 * time.Second
	// windDown is how long a pod may go on after its turn has ended by itself.
	windDown = 30 * time.Second
)

// TurnReconciler takes a Turn from its creation to its end. It belongs to the
// leader, which alone holds the sessions.
type TurnReconciler struct {
	// Client reads from the cache; Live asks the API server itself.
	Client client.Client
	Live   client.Reader
	// Grants names the Grants that a turn holds.
	Grants   authority.Grants
	Sessions *sessions.Registry
	Changes  *Changes
	Recorder events.EventRecorder
	// OnFinished is told each Turn once its ending is stored. It may be nil.
	OnFinished func(t *v1alpha1.Turn)
	Clock      func() time.Time
	// Egress is where every harness pod may connect to under a strict policy.
	Egress EgressTarget
	// Ready, when set, is closed once tools can be reached; nothing is decided before.
	Ready <-chan struct{}
	// Concurrency is how many Turns are reconciled at once; 16 when zero.
	Concurrency int

	// written is what was written last: what the cache shows may be older.
	written writes
}

// Reconcile brings one Turn a step further.
func (r *TurnReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := sessions.Key{Namespace: req.Namespace, Turn: req.Name}
	turn, err := r.read(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if turn == nil {
		r.Sessions.Forget(ctx, key)
		return ctrl.Result{}, nil
	}
	if turn.IsFinished() {
		r.Sessions.Forget(ctx, key)
		r.written.drop(turn.UID)
		if err := r.inspect(ctx, turn); err != nil {
			return settle(ctrl.Result{}, err)
		}
		result, err := r.clean(ctx, turn)
		return settle(result, err)
	}
	scope := newTurnScope(turn, r.Clock())
	scope.session, _ = r.Sessions.Get(key, string(turn.UID))
	result, err := r.step(ctx, scope)
	if err == nil && scope.justAdmitted() {
		// What it was admitted with is stored, so its pod need not wait until that comes
		// back from the API server.
		result, err = r.step(ctx, scope.following(r.Clock()))
	}
	return result, err
}

// step takes the Turn through the phases that can be done now, and stores that.
func (r *TurnReconciler) step(ctx context.Context, s *turnScope) (ctrl.Result, error) {
	if err := r.watchdog(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.advance(ctx, s)
	confined := r.confine(ctx, s)
	stored := r.store(ctx, s)
	s.confined = confined()
	if stored != nil {
		r.written.doubt(s.turn.UID)
		return requeueOnConflict(stored)
	}
	s.stored = true
	result.RequeueAfter = soonest(result.RequeueAfter, s.countersLeft)
	return settle(result, err)
}

// settle passes on a result and its error, unless the error is a conflict.
func settle(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return result, err
}

// read returns the Turn, or nil if there is none. Where the cache may be behind
// what was written, by this manager or by the one before it, the API server is asked.
func (r *TurnReconciler) read(ctx context.Context, name types.NamespacedName) (*v1alpha1.Turn, error) {
	turn := &v1alpha1.Turn{}
	if err := r.Client.Get(ctx, name, turn); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // no Turn and no error
		}
		return nil, fmt.Errorf("get turn: %w", err)
	}
	if turn.IsFinished() {
		return turn, nil
	}
	last, known := r.written.get(turn)
	if last != nil {
		return last, nil
	}
	if _, open := r.Sessions.Get(sessions.Key{Namespace: name.Namespace, Turn: name.Name}, string(turn.UID)); !known && !open && untouched(turn) {
		return turn, nil
	}
	fresh := &v1alpha1.Turn{}
	if err := r.Live.Get(ctx, name, fresh); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // no Turn and no error
		}
		return nil, fmt.Errorf("get turn: %w", err)
	}
	return fresh, nil
}

// untouched reports whether no manager has written to the Turn yet. What is done with
// it begins with a write on top of that very version, which fails if there is a newer
// one, so the cache will do.
func untouched(t *v1alpha1.Turn) bool {
	return len(t.Finalizers) == 0 && t.Status.Admission == nil && t.Status.ObservedGeneration == 0
}

// advance runs the phases that the Turn has not been through yet.
func (r *TurnReconciler) advance(ctx context.Context, s *turnScope) (ctrl.Result, error) {
	if s.session != nil && s.turn.Status.Admission == nil && !s.ended() {
		// Its admission could not be stored, because the Turn had changed meanwhile: it
		// is admitted anew, as it is now.
		r.Sessions.Forget(ctx, s.key())
		s.session = nil
	}
	if s.session == nil {
		if s.turn.Status.Admission == nil {
			return r.admit(ctx, s)
		}
		if err := r.resume(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	if reason := s.mustEnd(); reason != "" {
		s.session.Execution().Cancel(ctx, reason)
	}
	if s.ended() || s.turn.Status.Admission == nil {
		return ctrl.Result{}, nil
	}
	return r.runPod(ctx, s)
}

// store writes the status, and everything that must follow or precede it.
func (r *TurnReconciler) store(ctx context.Context, s *turnScope) error {
	s.reflect()
	if err := r.nameDisruption(ctx, s); err != nil {
		return err
	}
	if err := r.storeRecords(ctx, s); err != nil {
		return err
	}
	if err := patchStatus(ctx, r.Client, s.before, s.turn, s.before.Status, s.turn.Status); err != nil {
		return err
	}
	r.written.note(s.before.ResourceVersion, s.turn)
	if s.session != nil {
		if pod := s.turn.Status.Pod; pod != nil {
			s.session.Bind(sessions.Pod{Name: string(pod.Name), UID: string(pod.UID)})
		}
		s.session.Persisted(s.state.Revision)
	}
	if s.turn.IsFinished() {
		r.announce(s.turn)
	}
	return nil
}
