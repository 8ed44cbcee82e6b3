package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
)

// maxDetails is the most characters of a JSON text in a Turn's status.
const maxDetails = 32768

// MicroTime is an instant as the API keeps it.
func MicroTime(t contract.Timestamp) metav1.MicroTime {
	return metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
}

// Output is a turn's output as it goes into the status, with what goes beside it.
type Output struct {
	v1alpha1.TurnOutput
	// Stored is the content of the ConfigMap that a larger output is kept in.
	Stored []byte
}

// MakeOutput places an output: small ones in the status, larger ones beside it,
// and what is larger still is cut there. The size and hash are of the whole.
// Whole is true when the bytes given are the whole output.
func MakeOutput(data []byte, size int64, sum string, format v1alpha1.OutputFormat) Output {
	if sum == "" {
		digest := sha256.Sum256(data)
		sum = hex.EncodeToString(digest[:])
	}
	out := Output{TurnOutput: v1alpha1.TurnOutput{
		OutputFormat: format, OutputSize: new(size), OutputSHA256: v1alpha1.Digest(sum),
	}}
	if size <= v1alpha1.MaxInlineOutput && utf8.Valid(data) {
		out.Output = new(string(data))
		return out
	}
	if len(data) > v1alpha1.MaxReferencedOutput {
		data = data[:v1alpha1.MaxReferencedOutput]
	}
	out.Stored = data
	out.OutputTruncated = int64(len(data)) < size
	return out
}

// Outcome is a contract status as the API names it.
func Outcome(s contract.Status) v1alpha1.TurnOutcome { return v1alpha1.TurnOutcome(s) }

// Error translates the error of an ended turn; nil stays nil.
func Error(e *contract.ProtocolError) *v1alpha1.TurnError {
	if e == nil {
		return nil
	}
	return &v1alpha1.TurnError{
		Code: e.Code, Message: e.Message, Retryable: e.Retryable, Details: boundedText(e.Details),
	}
}

// Escalation translates a request for a human's decision; nil stays nil.
func Escalation(e *contract.Escalation) *v1alpha1.TurnEscalation {
	if e == nil {
		return nil
	}
	out := &v1alpha1.TurnEscalation{
		Reason: e.Reason, Reviewer: APIAddress(e.Reviewer), RequestedAt: MicroTime(e.RequestedAt),
		Status: v1alpha1.EscalationPending,
	}
	if e.RequestedAuthority != nil {
		if raw, err := json.Marshal(e.RequestedAuthority); err == nil {
			out.RequestedAuthority = boundedText(raw)
		}
	}
	return out
}

// ContractEscalation is the reverse of [Escalation].
func ContractEscalation(e *v1alpha1.TurnEscalation) *contract.Escalation {
	if e == nil {
		return nil
	}
	out := &contract.Escalation{
		Reason: e.Reason, Reviewer: Address(e.Reviewer), RequestedAt: contract.At(e.RequestedAt.UTC()), Status: contract.EscalationPending,
	}
	if e.RequestedAuthority != "" {
		if request, err := contract.Unmarshal[contract.CapabilityRequest]([]byte(e.RequestedAuthority)); err == nil {
			out.RequestedAuthority = &request
		}
	}
	return out
}

// Usage translates a turn's counters.
func Usage(u envelope.Usage) *v1alpha1.TurnUsage {
	return &v1alpha1.TurnUsage{ToolCalls: u.ToolCalls, Denied: u.Denied, CallsAfterEscalation: u.CallsAfterEscalation}
}

// Events is the excerpt of a turn's events that its status keeps: the first and
// the last ones, and how many there are. All says whether it is the whole list with all
// of its data.
func Events(events []contract.ExecutionEvent) (excerpt *v1alpha1.TurnEvents, all bool) {
	excerpt = &v1alpha1.TurnEvents{Count: int64(len(events))}
	few := len(events) <= v1alpha1.MaxFirstEvents+v1alpha1.MaxLastEvents
	all = few
	for i := range events {
		if !few && i >= v1alpha1.MaxFirstEvents && i < len(events)-v1alpha1.MaxLastEvents {
			continue
		}
		e := &events[i]
		excerpt.Items = append(excerpt.Items, v1alpha1.TurnEvent{
			Sequence: e.Sequence, EventID: v1alpha1.Identifier(e.EventID), Type: v1alpha1.EventType(e.Type),
			OccurredAt: MicroTime(e.OccurredAt), Data: eventData(e.Data),
		})
		all = all && utf8.RuneCount(e.Data) <= maxEventData
	}
	return excerpt, all
}

// maxEventData is the most characters of one event's data in a status.
const maxEventData = 4096

// eventData keeps data that fits; the names of a large catalogue, say, do not.
func eventData(raw contract.Object) v1alpha1.JSONText {
	if utf8.RuneCount(raw) > maxEventData {
		return `{"omitted":"too large for the status"}`
	}
	return v1alpha1.JSONText(raw)
}

// Metadata is a result's metadata as bounded text.
func Metadata(raw contract.Object) v1alpha1.JSONText { return boundedText(raw) }

func boundedText(raw []byte) v1alpha1.JSONText {
	if utf8.RuneCount(raw) > maxDetails {
		return `{"omitted":"too large for the status"}`
	}
	return v1alpha1.JSONText(raw)
}

// MaxMessage is the most characters of a condition's message that we write.
const MaxMessage = 1024

// Text shortens a message to at most n characters for a condition or an event.
func Text(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
