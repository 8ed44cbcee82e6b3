package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// DefaultMaxResponseBytes is the largest answer that is read, unless
// [WithMaxResponseBytes] says otherwise.
const DefaultMaxResponseBytes = 32 << 20

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base        string
	http        *http.Client
	headers     []func(ctx context.Context) (http.Header, error)
	token       func(ctx context.Context) (string, error)
	purpose     string
	maxResponse int64
}

// Option configures a [Client].
type Option func(*Client) error

// New returns a client of the API at baseURL, an http or https URL whose path, if
// any, is where the API is mounted. It connects to nobody yet.
func New(baseURL string, opts ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base URL: %w", err)
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, fmt.Errorf("base URL %q: want http:// or https:// and a host", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("base URL %q: must not have a user, a query or a fragment", u.Redacted())
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), maxResponse: DefaultMaxResponseBytes}
	for _, opt := range opts {
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	if c.http == nil {
		c.http = &http.Client{}
	}
	// The API redirects nowhere; who does is not to be followed with a token.
	own := *c.http
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// WithHTTPClient has requests made by hc: its transport, jar and timeout. Its
// redirect policy is not used.
func WithHTTPClient(hc *http.Client) Option {
	return func(c *Client) error {
		if hc == nil {
			return errors.New("the HTTP client is nil")
		}
		c.http = hc
		return nil
	}
}

// WithToken sends the token as authorization: Bearer with every request. It is set
// after all headers, and wins over one of that name.
func WithToken(token string) Option {
	return func(c *Client) error {
		if token == "" {
			return errors.New("the token is empty")
		}
		c.token = func(context.Context) (string, error) { return token, nil }
		return nil
	}
}

// WithTokenFunc is [WithToken] with a token that is asked for at every request.
func WithTokenFunc(token func(ctx context.Context) (string, error)) Option {
	return func(c *Client) error {
		if token == nil {
			return errors.New("the token function is nil")
		}
		c.token = token
		return nil
	}
}

// WithHeaders sends the headers with every request.
func WithHeaders(h http.Header) Option {
	h = h.Clone()
	return WithHeadersFunc(func(context.Context) (http.Header, error) { return h, nil })
}

// WithHeadersFunc is [WithHeaders] with headers that are asked for at every request.
// Later options win over earlier ones.
func WithHeadersFunc(headers func(ctx context.Context) (http.Header, error)) Option {
	return func(c *Client) error {
		if headers == nil {
			return errors.New("the headers function is nil")
		}
		c.headers = append(c.headers, headers)
		return nil
	}
}

// WithPurpose sends x-sharedos-purpose with every request: a hint to the server's
// context resolver, never authority in itself.
func WithPurpose(purpose string) Option {
	return func(c *Client) error {
		c.purpose = purpose
		return nil
	}
}

// WithMaxResponseBytes bounds how much of an answer is read; a larger one is an
// error.
func WithMaxResponseBytes(n int64) Option {
	return func(c *Client) error {
		if n < 1 {
			return fmt.Errorf("the limit of answers is %d bytes, must be positive", n)
		}
		c.maxResponse = n
		return nil
	}
}

// CallOption adjusts one call.
type CallOption func(*callOptions)

type callOptions struct {
	headers http.Header
	purpose string
}

// Purpose replaces the client's purpose in this call.
func Purpose(purpose string) CallOption {
	return func(o *callOptions) { o.purpose = purpose }
}

// Headers are sent with this call; they win over the client's own, and the token
// wins over them.
func Headers(h http.Header) CallOption {
	return func(o *callOptions) {
		if o.headers == nil {
			o.headers = make(http.Header, len(h))
		}
		set(o.headers, h)
	}
}

// RequestID is sent as x-request-id, which the server echoes.
func RequestID(id string) CallOption {
	return Headers(http.Header{headerRequestID: {id}})
}

// set has what is in from replace what is in to, whatever the names' case.
func set(to, from http.Header) {
	for name, values := range from {
		to[http.CanonicalHeaderKey(name)] = values
	}
}
