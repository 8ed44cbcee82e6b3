package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// smallBody is the largest body that its announced length is believed for.
const smallBody = 64 << 10

// read takes in the whole body. What does not arrive whole, or in time, is no JSON.
func (x *exchange) read() ([]byte, *failure) {
	if x.r.ContentLength > x.h.opts.MaxBodyBytes {
		x.w.Header().Set("Connection", "close")
		return nil, x.tooLarge()
	}
	body, err := x.readWhole()
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, x.tooLarge()
	}
	x.w.Header().Set("Connection", "close")
	message := "the body ended before it was complete"
	if errors.Is(err, os.ErrDeadlineExceeded) {
		message = "the body did not arrive in time"
	}
	return nil, &failure{status: http.StatusBadRequest, code: codeInvalidJSON, message: message}
}

func (x *exchange) readWhole() ([]byte, error) {
	if n := x.r.ContentLength; n >= 0 && n <= smallBody {
		body := make([]byte, n)
		_, err := io.ReadFull(x.r.Body, body)
		return body, err
	}
	if len(x.r.TransferEncoding) > 0 && x.r.ProtoMajor == 1 {
		// It may have announced a length as well, which net/http hides. What follows
		// must then not be read as a request (RFC 9112, 6.1).
		x.w.Header().Set("Connection", "close")
	}
	var body bytes.Buffer
	_, err := body.ReadFrom(http.MaxBytesReader(x.w, x.r.Body, x.h.opts.MaxBodyBytes))
	return body.Bytes(), err
}

func (x *exchange) tooLarge() *failure {
	return &failure{
		status: http.StatusRequestEntityTooLarge, code: codePayloadTooLarge,
		message: fmt.Sprintf("the body must have at most %d bytes", x.h.opts.MaxBodyBytes),
	}
}

// parse reads one object of the contract. Text that is no JSON at all is told apart
// from JSON that the contract refuses.
func parse[T any](body []byte) (T, *failure) {
	v, err := contract.Unmarshal[T](body)
	if err == nil {
		return v, nil
	}
	var zero T
	if !utf8.Valid(body) || !json.Valid(body) {
		return zero, &failure{status: http.StatusBadRequest, code: codeInvalidJSON, message: "the body is not JSON"}
	}
	return zero, &failure{status: http.StatusBadRequest, code: contract.CodeInvalidRequest, message: err.Error()}
}
