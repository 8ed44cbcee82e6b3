package controllers

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// defaultStartTimeout is how long a pod may take when nobody says.
const defaultStartTimeout = 120 * time.Second

// turnScope is one Turn while it is reconciled.
type turnScope struct {
	turn    *v1alpha1.Turn
	before  *v1alpha1.Turn
	session *sessions.Session
	state   sessions.State
	// harness is the one that the Turn was admitted with, if that was just now.
	harness *v1alpha1.Harness
	// confined says that the pod's own network policy is there.
	confined bool
	// stored says that everything here is in the API server.
	stored bool
	// records are the contents that are stored beside the status, by kind.
	records map[string][]byte
	// now is the instant of this look.
	now time.Time
	// waiting says why the pod has not started, for the BridgeReady condition;
	// waitingFor says it in one word.
	waiting, waitingFor string
	// retry says that what is waited for will not tell when it is there.
	retry bool
	// countersLeft is when the counters are to be stored, if they were not now.
	countersLeft time.Duration
}

func newTurnScope(turn *v1alpha1.Turn, now time.Time) *turnScope {
	return &turnScope{now: now.UTC().Truncate(time.Microsecond), turn: turn.DeepCopy(), before: turn, records: map[string][]byte{}}
}

func (s *turnScope) key() sessions.Key {
	return sessions.Key{Namespace: s.turn.Namespace, Turn: s.turn.Name}
}

// justAdmitted reports whether this look admitted the Turn, and that is stored.
func (s *turnScope) justAdmitted() bool {
	return s.stored && s.before.Status.Admission == nil && s.turn.Status.Admission != nil && !s.turn.IsFinished()
}

// following is the next look at the Turn as it was stored.
func (s *turnScope) following(now time.Time) *turnScope {
	next := newTurnScope(s.turn, now)
	next.session, next.harness, next.confined = s.session, s.harness, s.confined
	return next
}

// mustEnd is why the Turn is to be ended, if it is.
func (s *turnScope) mustEnd() string {
	switch {
	case s.turn.Spec.Cancel:
		return "cancelled by spec.cancel"
	case !s.turn.DeletionTimestamp.IsZero():
		return "the Turn was deleted"
	default:
		return ""
	}
}

// ended reports whether the session has ended.
func (s *turnScope) ended() bool {
	if s.session == nil {
		return false
	}
	_, ended := s.session.Execution().Ended()
	return ended
}

// startTimeout is how long the pod may take until the bridge is ready.
func startTimeout(t *v1alpha1.Turn, h *v1alpha1.Harness) time.Duration {
	switch {
	case t.Spec.StartTimeoutMs != nil:
		return time.Duration(*t.Spec.StartTimeoutMs) * time.Millisecond
	case h != nil && h.Spec.Defaults != nil && h.Spec.Defaults.StartTimeoutMs != nil:
		return time.Duration(*h.Spec.Defaults.StartTimeoutMs) * time.Millisecond
	default:
		return defaultStartTimeout
	}
}

// reflect writes what the session has become into the status.
func (s *turnScope) reflect() {
	status := &s.turn.Status
	status.ObservedGeneration = s.turn.Generation
	status.ExecutionID = v1alpha1.Identifier(s.turn.EffectiveExecutionID())
	status.TraceID = v1alpha1.Identifier(translate.TraceID(s.turn))
	if s.session != nil {
		s.state = s.session.State()
		s.reflectProgress()
	}
	if s.state.Result != nil {
		s.reflectEnding()
	}
	s.setConditions()
	s.reflectCounters()
}

// reflectProgress stores what a failover resumes from, but for the counters.
func (s *turnScope) reflectProgress() {
	status := &s.turn.Status
	if status.Admission == nil {
		return
	}
	point := s.session.Execution().Checkpoint()
	if point.StartedAt != nil {
		status.StartedAt = new(translate.MicroTime(*point.StartedAt))
		status.Admission.Deadline = new(translate.MicroTime(contract.At(point.StartedAt.Add(s.session.Timeout()))))
	}
	status.Escalation = translate.Escalation(point.Escalation)
}

// reflectCounters stores what the turn has used. A turn that calls tools without pause
// changes it all the time, and each write is seen by this controller too, so on their own
// the counters are stored once in progressEvery; with anything else they go along.
func (s *turnScope) reflectCounters() {
	status := &s.turn.Status
	if s.session == nil || s.state.Result != nil || status.Admission == nil {
		return
	}
	point := s.session.Execution().Checkpoint()
	usage, last := translate.Usage(point.Usage), status.Checkpoint
	if last != nil && last.NextSequence == point.NextSequence && status.Usage != nil && *status.Usage == *usage {
		return
	}
	if last != nil && equality.Semantic.DeepEqual(s.before.Status, *status) {
		// A time in the future is another manager's clock.
		if left := last.At.Add(progressEvery).Sub(s.now); left > 0 && left <= progressEvery {
			s.countersLeft = left
			return
		}
	}
	status.Usage, status.Refusals = usage, translate.Refusals(point.Denied)
	status.Checkpoint = &v1alpha1.TurnCheckpoint{
		At: metav1.NewMicroTime(s.now), ToolCalls: point.Usage.ToolCalls, Denied: point.Usage.Denied,
		Steps: int64(len(point.Steps)), NextSequence: point.NextSequence, Effects: point.Unsafe,
	}
	status.Events, _ = translate.Events(point.Events)
}

// reflectEnding stores how the turn ended. It is reached once per Turn.
func (s *turnScope) reflectEnding() {
	status, result := &s.turn.Status, s.state.Result
	status.Outcome = translate.Outcome(result.Status)
	status.CompletedAt = new(translate.MicroTime(result.CompletedAt))
	if status.StartedAt == nil {
		status.StartedAt = new(translate.MicroTime(result.StartedAt))
	}
	status.Error = translate.Error(result.Error)
	if status.Outcome == v1alpha1.TurnCancelled && status.Error != nil {
		status.Error.Message = s.whyCancelled()
	}
	status.Escalation = translate.Escalation(result.Escalation)
	status.Metadata = translate.Metadata(result.Metadata)
	last := s.session.Execution().Checkpoint()
	status.Usage, status.Refusals = translate.Usage(last.Usage), translate.Refusals(last.Denied)
	status.Checkpoint = nil
	s.reflectEvents()
	s.reflectOutput()
}

// whyCancelled says who ended a cancelled turn: somebody, or the clock.
func (s *turnScope) whyCancelled() string {
	if reason := s.mustEnd(); reason != "" {
		return "The turn was " + strings.TrimPrefix(reason, "the Turn was ") + "."
	}
	return fmt.Sprintf("The turn's time was up after %s.", s.session.Timeout())
}

func (s *turnScope) reflectEvents() {
	excerpt, all := translate.Events(s.state.Result.Events)
	if !all {
		s.records[recordEvents] = EncodeEvents(s.state.Result.Events, maxRecord)
		excerpt.Ref = &v1alpha1.LocalReference{Name: recordName(s.turn, recordEvents)}
	}
	s.turn.Status.Events = excerpt
}

func (s *turnScope) reflectOutput() {
	o := s.state.Outcome
	if o == nil || !o.Started {
		return
	}
	s.turn.Status.ExitCode = new(int32(o.ExitCode)) //nolint:gosec // 0 to 255
	format := v1alpha1.OutputText
	if s.session.Subject().JSONOutput {
		format = v1alpha1.OutputJSON
	}
	out := translate.MakeOutput(o.Output, o.OutputSize, o.OutputSHA256, format)
	if out.Stored != nil {
		s.records[recordOutput] = out.Stored
		out.OutputRef = &v1alpha1.DataReference{Name: recordName(s.turn, recordOutput), Key: recordKey}
	}
	s.turn.Status.TurnOutput = out.TurnOutput
}
