package upstream

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Codes of failed calls. A result that is not one is
// [contract.CodeInvalidToolResult].
const (
	// CodeUnavailable: the server could not be reached or broke off.
	CodeUnavailable = "upstream_unavailable"
	// CodeTimeout: no answer in time; the call may have been executed.
	CodeTimeout = "upstream_timeout"
	// CodeRefused: the server refused the request by its HTTP status.
	CodeRefused = "upstream_refused"
	// CodeCredentials: the credentials could not be read, or the server did not
	// accept them.
	CodeCredentials = "upstream_credentials_refused" //nolint:gosec // the name of an error
	// CodeProtocol: the server answered with an error of the protocol.
	CodeProtocol = "upstream_protocol_error"
	// CodeTool: the tool itself reported an error; the message is the tool's.
	CodeTool = "upstream_tool_error"
	// CodeTooLarge: the answer is larger than the limit.
	CodeTooLarge = "upstream_answer_too_large"
	// CodeChanged: the tool is not what it was when the turn began, or its source was
	// replaced since.
	CodeChanged = "upstream_tool_changed"
	// CodeCancelled: the caller gave up.
	CodeCancelled = "operation_cancelled"
)

// Errors of connecting and discovering.
var (
	// ErrUnreachable means that the server did not answer.
	ErrUnreachable = errors.New("the server cannot be reached")
	// ErrCredentials means that the credentials could not be read or were refused.
	ErrCredentials = errors.New("the credentials were not accepted")
	// ErrDiscovery means that the server answered, and not with a list of tools.
	ErrDiscovery = errors.New("the server's answer is no list of tools")
	// ErrTooManyTools means that the server offers more than [MaxTools].
	ErrTooManyTools = errors.New("the server offers too many tools")
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("the client is closed")
)

func messageOf(code string) string {
	switch code {
	case CodeUnavailable:
		return "The tool's server cannot be reached."
	case CodeTimeout:
		return "The tool's server did not answer in time; the call may have been executed."
	case CodeRefused:
		return "The tool's server refused the request."
	case CodeCredentials:
		return "The tool's server did not accept the credentials."
	case CodeProtocol:
		return "The tool's server answered with an error."
	case CodeTool:
		return "The tool reported an error."
	case CodeTooLarge:
		return "The tool's answer is too large."
	case CodeChanged:
		return "The tool was changed after this turn began; it can be used again in another turn."
	case CodeCancelled:
		return "The call was cancelled."
	default:
		return "The answer of the tool's server is not valid."
	}
}

func failure(code string, retryable bool) *kernel.Failure {
	return &kernel.Failure{
		Status: contract.StatusFailed,
		Err:    contract.ProtocolError{Code: code, Message: messageOf(code), Retryable: &retryable},
	}
}

// failureSaying is failure with the server's own words, as far as they are fit.
func failureSaying(code, words string) *kernel.Failure {
	f := failure(code, false)
	if words = clip(words, contract.MaxMessage); words != "" {
		f.Err.Message = words
	}
	return f
}

// clip cuts a text of somebody else's to a number of characters.
func clip(text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}
