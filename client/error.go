package client

import (
	"strconv"
	"strings"
)

// Codes of errors that the server did not name.
const (
	// CodeRequestFailed is a request that could not be made or was not answered:
	// [Error.Err] says why, and is the context's error if that ended it.
	CodeRequestFailed = "request_failed"
	// CodeInvalidResponse is an answer of 2xx that does not match the contract: the
	// server is of another version, or is not this API.
	CodeInvalidResponse = "invalid_response"
	// CodeResponseTooLarge is an answer over the client's limit.
	CodeResponseTooLarge = "response_too_large"
	// CodeUnexpectedResponse is an answer that is not 2xx and not an error body of this
	// API: a proxy's, usually.
	CodeUnexpectedResponse = "unexpected_response"
)

// Error is every failure of a call.
type Error struct {
	// Status is the HTTP status, or 0 if there was no answer.
	Status int
	// Code is the server's error.code, or one of this package's.
	Code string
	// RequestID is the one that the server's own records have; empty without an answer.
	RequestID string
	// Message is the server's sentence, or this package's.
	Message string
	// Err is the cause on this side, if there is one.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	var out strings.Builder
	out.WriteString("sharedos: ")
	out.WriteString(e.Code)
	if e.Message != "" {
		out.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		out.WriteString(": " + e.Err.Error())
	}
	if e.Status != 0 {
		out.WriteString(" (status " + strconv.Itoa(e.Status) + ", request " + e.RequestID + ")")
	}
	return out.String()
}

// Unwrap returns the cause on this side.
func (e *Error) Unwrap() error { return e.Err }
