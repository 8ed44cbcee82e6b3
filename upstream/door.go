package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Limits of the door.
const (
	// maxRedirects within the origin.
	maxRedirects = 3
	// linger is how long an answered request may take to end its stream, so that its
	// connection can be used again.
	linger = time.Second
	// eventOverhead is what a stream's framing may add to a message.
	eventOverhead = 1 << 10
)

// Errors of the door; the SDK wraps them.
var (
	errOrigin      = errors.New("the request leads to another origin")
	errHeaders     = errors.New("the credentials cannot be read")
	errRedirection = errors.New("too many redirects, or one that is not of the kind that repeats the request")
)

// door carries the requests of one session to the server. It is an
// [http.RoundTripper], and the only one that the SDK is given.
type door struct {
	base      *url.URL
	transport func() http.RoundTripper
	headers   func(ctx context.Context, fresh bool) (http.Header, error)
	limit     int64
	// legacy is HTTP with server-sent events, where answers come on the one stream.
	legacy bool
	// lost is called when the server's own stream broke off.
	lost func()

	questions questions
	running   sync.WaitGroup
}

// RoundTrip implements [http.RoundTripper].
func (d *door) RoundTrip(request *http.Request) (*http.Response, error) {
	if !sameOrigin(request.URL, d.base) {
		return nil, errOrigin
	}
	switch request.Method {
	case http.MethodPost:
		return d.post(request)
	case http.MethodGet:
		if d.legacy || request.Header.Get("Last-Event-ID") != "" {
			return d.stream(request)
		}
		return d.listen(request), nil
	default:
		response, err := d.send(request, nil, &exchange{})
		if err != nil {
			return nil, err
		}
		return replace(response, response.StatusCode, "", nil), nil
	}
}

// post sends one message.
func (d *door) post(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	_ = request.Body.Close()
	method, id := read(body)
	x := &exchange{}
	if id != "" {
		if method == methodCall || method == methodList || method == methodHello {
			x = exchangeOf(request.Context())
		}
		d.questions.ask(id, question{method, x})
		context.AfterFunc(request.Context(), func() { d.questions.take(id) })
	}
	// The request outlives its caller a little when it was answered, and not otherwise.
	life, end := context.WithCancel(context.WithoutCancel(request.Context()))
	detach := context.AfterFunc(request.Context(), end)
	response, err := d.send(request.WithContext(life), body, x)
	if err != nil {
		detach()
		end()
		return nil, err
	}
	x.set(func(o *outcome) {
		o.sent, o.status, o.session = true, response.StatusCode, d.legacy || request.Header.Get("Mcp-Session-Id") != ""
	})
	answer := &posted{door: d, response: response, id: id, x: x, detach: detach, end: end}
	return answer.take()
}

// read says what a message of ours is.
func read(body []byte) (method, id string) {
	node, err := strictjson.Parse(body)
	if err != nil {
		return "", ""
	}
	m, _ := node.Member("method")
	if i, ok := node.Member("id"); ok && m.Text != "" {
		id = string(i.Raw)
	}
	return m.Text, id
}

// stream opens a stream whose outcome the SDK waits for: the legacy transport's only
// one, or one that goes on after it broke off.
func (d *door) stream(request *http.Request) (*http.Response, error) {
	response, err := d.send(request, nil, &exchange{})
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || mediaType(response) != "text/event-stream" {
		if response.StatusCode == http.StatusOK {
			return replace(response, http.StatusNotAcceptable, "", nil), nil
		}
		return replace(response, response.StatusCode, "", nil), nil
	}
	response.Body = newSieve(d, response.Body, nil)
	return response, nil
}

// send makes the request with the credentials, once more when they were renewed, and
// follows redirects within the origin that repeat it.
func (d *door) send(request *http.Request, body []byte, x *exchange) (*http.Response, error) {
	target, renewed := request.URL, false
	credentials, err := d.credentials(request.Context(), false)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 2 {
		response, err := d.try(request, target, body, x, credentials)
		if err != nil {
			return nil, err
		}
		switch response.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			if renewed || d.headers == nil {
				return response, nil
			}
			fresh, err := d.credentials(request.Context(), true)
			if err != nil {
				discard(response)
				return nil, err
			}
			if maps.EqualFunc(credentials, fresh, slices.Equal[[]string]) {
				return response, nil // it would say the same again
			}
			credentials, renewed = fresh, true
		case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			if target, err = response.Location(); err != nil || !sameOrigin(target, d.base) {
				discard(response)
				return nil, errOrigin
			}
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusMultipleChoices:
			discard(response)
			return nil, errRedirection
		default:
			return response, nil
		}
		discard(response)
	}
	return nil, errRedirection
}

// credentials are the headers with them; fresh reads them anew.
func (d *door) credentials(ctx context.Context, fresh bool) (http.Header, error) {
	if d.headers == nil {
		return nil, nil //nolint:nilnil // there are none
	}
	header, err := d.headers(ctx, fresh)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHeaders, err)
	}
	return header, nil
}

func (d *door) try(request *http.Request, target *url.URL, body []byte, x *exchange, credentials http.Header) (*http.Response, error) {
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	out := request.Clone(ctx)
	out.URL, out.Host = target, ""
	if body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	for name, values := range credentials {
		out.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	response, err := d.transport().RoundTrip(out)
	if sent.Load() {
		x.set(func(o *outcome) { o.sent = true })
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return response, nil
}

// sameOrigin compares scheme, host and port, RFC 6454.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b) && a.User == nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

func mediaType(response *http.Response) string {
	name, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return name
}

// maxIgnored is how much of a body that nobody wants is read for its connection's sake.
const maxIgnored = 64 << 10

func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxIgnored)
	_ = response.Body.Close()
}

// replace ends a response and returns one in its place, of which nothing of the
// server's is left but the session.
func replace(response *http.Response, status int, contentType string, body []byte) *http.Response {
	discard(response)
	out := &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: response.Request,
	}
	if contentType != "" {
		out.Header.Set("Content-Type", contentType)
	}
	if session := response.Header.Get("Mcp-Session-Id"); session != "" {
		out.Header.Set("Mcp-Session-Id", session)
	}
	return out
}
