package envelope

import (
	"encoding/json"
	"strings"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Limits of what a turn keeps about its denied calls.
const (
	// MaxDeniedCalls is how many are kept, the first ones: what is refused first is
	// mostly the cause of what follows. [Usage] counts all of them.
	MaxDeniedCalls = 32
	// MaxRequiredAuthority is the most bytes of what one of them needed; what is
	// longer is left out, never cut.
	MaxRequiredAuthority = 2048
)

// DeniedCall is a call that was denied, for whoever asks which authority it lacked.
// It holds nothing of the arguments but the place that the question was about.
type DeniedCall struct {
	// CallID and Tool are as in the call's events: bounded, and valid text.
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	// Code of the refusal.
	Code string `json:"code"`
	// Required is a CapabilityRequest that describes what the call needed. It is
	// absent where that was not established, or is too long.
	Required contract.Object `json:"requiredAuthority,omitempty"`
}

// keepDenied takes a denied call into the record. The caller holds the lock.
func (x *Execution) keepDenied(report *kernel.Report) {
	if len(x.denied) >= MaxDeniedCalls {
		return
	}
	r := &report.Result
	kept := DeniedCall{CallID: boundedText(r.CallID), Tool: boundedText(r.Tool)}
	if r.Error != nil {
		kept.Code = r.Error.Code
	}
	if report.Required != nil {
		if raw, err := json.Marshal(report.Required); err == nil && len(raw) <= MaxRequiredAuthority {
			kept.Required = raw
		}
	}
	x.denied = append(x.denied, kept)
}

// boundedText is text that a caller may have chosen as the record takes it: bounded,
// and valid whatever it was.
func boundedText(s string) string {
	return strings.ToValidUTF8(cut(s, contract.MaxIdentifier), "\uFFFD")
}
