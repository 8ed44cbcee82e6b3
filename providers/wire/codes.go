package wire

import (
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Codes of failures between kernel and provider. A malformed answer is
// [contract.CodeInvalidResourceResult].
const (
	// CodeUnavailable: the provider could not be reached or broke off. It is
	// retryable only when the operation surely never left.
	CodeUnavailable = "provider_unavailable"
	// CodeBusy: the provider had too much to do. Nothing was executed.
	CodeBusy = "provider_busy"
	// CodeTimeout: no answer in time; the operation may have been executed.
	CodeTimeout = "provider_timeout"
	// CodeRefused: the provider did not accept the request.
	CodeRefused = "provider_refused"
	// CodeRequestTooLarge: the operation is larger than the provider takes.
	CodeRequestTooLarge = "operation_too_large"
	// CodeAnswerTooLarge: the answer is larger than the client takes.
	CodeAnswerTooLarge = "provider_answer_too_large"
	// CodeCancelled: the caller gave up.
	CodeCancelled = "operation_cancelled"
)

func messageOf(code string) string {
	switch code {
	case CodeUnavailable:
		return "The resource provider cannot be reached."
	case CodeBusy:
		return "The resource provider has too much to do at the moment."
	case CodeTimeout:
		return "The resource provider did not answer in time."
	case CodeRefused:
		return "The resource provider refused the request."
	case CodeRequestTooLarge:
		return "The operation is larger than the resource provider accepts."
	case CodeAnswerTooLarge:
		return "The answer of the resource provider is too large."
	case CodeCancelled:
		return "The operation was cancelled."
	default:
		return "The answer of the resource provider is not valid."
	}
}

func failure(code string, retryable bool) *kernel.Failure {
	return &kernel.Failure{
		Status: contract.StatusFailed,
		Err:    contract.ProtocolError{Code: code, Message: messageOf(code), Retryable: &retryable},
	}
}
