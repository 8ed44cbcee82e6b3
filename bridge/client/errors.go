package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sharedos-dev/operator/bridge"
)

// ErrUnreachable is wrapped by every error that means no usable answer came
// from the kernel service.
var ErrUnreachable = errors.New("kernel service did not answer")

// connectionError is an attempt that ended without an answer.
type connectionError struct {
	// sent says that some of the request may have left this machine. Only when
	// it is false is it certain that the kernel did not see the request.
	sent bool
	err  error
}

func (e *connectionError) Error() string { return fmt.Sprintf("%v: %v", ErrUnreachable, e.err) }

func (e *connectionError) Unwrap() []error { return []error{ErrUnreachable, e.err} }

// answerError turns an answer that is not 2xx into an error: a [*bridge.Error]
// when the body is one. A server error without one came from something between
// here and the kernel, and says nothing about what the kernel did.
func answerError(status int, body []byte, secrets ...string) error {
	var parsed bridge.ErrorBody
	if err := json.Unmarshal(body, &parsed); err == nil && parsed.Error.Code != "" {
		e := parsed.Error
		e.Code, e.Message = scrub(e.Code, secrets), scrub(e.Message, secrets)
		return &e
	}
	err := fmt.Errorf("unexpected status %d without an error body", status)
	if status >= 500 {
		return &connectionError{sent: true, err: err}
	}
	return err
}

// maxMessage bounds what is repeated of a kernel's message, bytes.
const maxMessage = 1024

// scrub keeps a credential that the other end echoed out of errors and logs.
func scrub(message string, secrets []string) string {
	for _, s := range secrets {
		if s != "" {
			message = strings.ReplaceAll(message, s, "[redacted]")
		}
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return message
}

// retryable says that an attempt may be repeated by anyone to whom a repeat is
// harmless.
func retryable(err error) bool {
	if _, lost := errors.AsType[*connectionError](err); lost {
		return true
	}
	refused, ok := errors.AsType[*bridge.Error](err)
	return ok && refused.Retryable
}

// hasCode says that the kernel answered with this code.
func hasCode(err error, code string) bool {
	var refused *bridge.Error
	return errors.As(err, &refused) && refused.Code == code
}
