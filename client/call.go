package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

const (
	headerRequestID = "X-Request-Id"
	headerPurpose   = "X-Sharedos-Purpose"
)

// answered is a 2xx with what its body says.
type answered struct {
	status int
	id     string
	body   []byte
}

// send makes one request and returns an answer of 2xx.
func (c *Client) send(ctx context.Context, method, path string, body any, opts []CallOption) (answered, error) {
	req, err := c.request(ctx, method, path, body, opts)
	if err != nil {
		return answered{}, &Error{Code: CodeRequestFailed, Message: "the request could not be made", Err: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answered{}, &Error{Code: CodeRequestFailed, Message: "the request was not answered", Err: err}
	}
	defer res.Body.Close()
	got := answered{status: res.StatusCode, id: res.Header.Get(headerRequestID)}
	// One byte more than the limit tells an answer at the limit from a longer one.
	got.body, err = io.ReadAll(io.LimitReader(res.Body, c.maxResponse+1))
	switch {
	case err != nil:
		return got, got.fault(CodeRequestFailed, "the answer did not arrive whole", err)
	case int64(len(got.body)) > c.maxResponse:
		return got, got.fault(CodeResponseTooLarge, fmt.Sprintf("the answer has more than %d bytes", c.maxResponse), nil)
	case got.status < http.StatusOK || got.status >= http.StatusMultipleChoices:
		return got, got.refused()
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return got, got.fault(CodeInvalidResponse, "the answer is not application/json", err)
	}
	return got, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any, opts []CallOption) (*http.Request, error) {
	var call callOptions
	for _, opt := range opts {
		opt(&call)
	}
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode body: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	for _, headers := range c.headers {
		h, err := headers(ctx)
		if err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		set(req.Header, h)
	}
	set(req.Header, call.headers)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if purpose := either(call.purpose, c.purpose); purpose != "" {
		req.Header.Set(headerPurpose, purpose)
	}
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		if token == "" {
			return nil, errors.New("token: the token function returned none")
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

func either(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (a answered) fault(code, message string, cause error) *Error {
	return &Error{Status: a.status, Code: code, RequestID: a.id, Message: message, Err: cause}
}

// refused reads an error body. It is lenient in what a later server may add.
func (a answered) refused() *Error {
	var body struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"requestId"`
		} `json:"error"`
	}
	err := strictjson.Unmarshal(a.body, &body, strictjson.Options{AllowUnknown: true})
	if err != nil || body.Error.Code == "" {
		return a.fault(CodeUnexpectedResponse, "the answer is not an error of this API", nil)
	}
	return &Error{
		Status: a.status, Code: body.Error.Code, Message: body.Error.Message, RequestID: either(body.Error.RequestID, a.id),
	}
}

// call makes a request whose answer is one object, parsed by parse and accepted by
// check: an answer to something else is none.
func call[T any](ctx context.Context, c *Client, method, path string, body any, opts []CallOption, parse func([]byte) (T, error), check func(int, T) error) (T, error) {
	var zero T
	got, err := c.send(ctx, method, path, body, opts)
	if err != nil {
		return zero, err
	}
	v, err := parse(got.body)
	if err == nil && check != nil {
		err = check(got.status, v)
	}
	if err != nil {
		return zero, got.fault(CodeInvalidResponse, "the answer does not match the contract", err)
	}
	return v, nil
}
