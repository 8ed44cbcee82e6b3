package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Defaults of [Options].
const (
	DefaultMaxResponse = 16 << 20
	DefaultTimeout     = 60 * time.Second
)

// Options configure a [Client]. BaseURL is required.
type Options struct {
	// BaseURL is the provider's https URL, with an optional path prefix and
	// without query, fragment or user.
	BaseURL string
	// TLS holds the client certificate and the provider's CA. It is cloned.
	TLS *tls.Config
	// MaxResponse bounds an answer, bytes; 0 is DefaultMaxResponse.
	MaxResponse int64
	// Timeout bounds one operation; 0 is DefaultTimeout.
	Timeout time.Duration
	// Headers, when set, yields headers to add to every request, such as a
	// credential read from a rotated Secret. They never appear in errors.
	Headers func(ctx context.Context) (http.Header, error)
	// DialContext, when set, opens the connections; it is where addresses are checked.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Around, when set, goes around the client's transport, to watch it.
	Around func(http.RoundTripper) http.RoundTripper
	// AllowPlaintext accepts an http URL. For tests only.
	AllowPlaintext bool
}

// Client is a [kernel.ResourceProvider] that asks a remote one. It keeps one
// HTTP/2 connection, follows no redirect and ignores proxy settings. It is safe
// for concurrent use.
type Client struct {
	url     string
	http    *http.Client
	max     int64
	timeout time.Duration
	headers func(ctx context.Context) (http.Header, error)
}

// NewClient checks the options and returns a client. It opens no connection.
func NewClient(opts Options) (*Client, error) {
	u, err := url.Parse(opts.BaseURL)
	if err != nil {
		return nil, errors.New("parse provider URL: not a URL")
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !opts.AllowPlaintext):
		return nil, errors.New("check provider URL: the scheme must be https")
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("check provider URL: must have a host and neither user, query nor fragment")
	}
	c := &Client{
		url: strings.TrimSuffix(u.String(), "/") + Path,
		max: opts.MaxResponse, timeout: opts.Timeout, headers: opts.Headers,
	}
	if c.max <= 0 {
		c.max = DefaultMaxResponse
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	var transport http.RoundTripper = newTransport(&opts)
	if opts.Around != nil {
		transport = opts.Around(transport)
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func newTransport(opts *Options) *http.Transport {
	dial := opts.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	config := opts.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// A peer that vanished is found by pings, not by the next operation.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Invoke implements [kernel.ResourceProvider]. Its error is a [*kernel.Failure]
// whose message holds no internal detail.
func (c *Client) Invoke(ctx context.Context, op contract.ResourceOperation) (contract.ResourceResult, error) {
	var none contract.ResourceResult
	body, err := encodeOperation(op)
	if err != nil {
		return none, failure(CodeRefused, false)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var sent atomic.Bool
	request, err := c.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	}), body)
	if err != nil {
		return none, failure(CodeUnavailable, true)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return none, broken(ctx, !sent.Load())
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return none, refusal(response.StatusCode)
	}
	return c.read(ctx, response, op.OperationID)
}

func encodeOperation(op contract.ResourceOperation) ([]byte, error) {
	o, err := fromOperation(op)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil, fmt.Errorf("encode operation: %w", err)
	}
	return b.Bytes(), nil
}

func (c *Client) request(ctx context.Context, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.headers != nil {
		extra, err := c.headers(ctx)
		if err != nil {
			return nil, fmt.Errorf("read headers: %w", err)
		}
		for name, values := range extra {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	return request, nil
}

func (c *Client) read(ctx context.Context, response *http.Response, operationID string) (contract.ResourceResult, error) {
	var none contract.ResourceResult
	if mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return none, failure(contract.CodeInvalidResourceResult, false)
	}
	if response.ContentLength > c.max {
		return none, failure(CodeAnswerTooLarge, false)
	}
	body, err := readAll(response.Body, response.ContentLength, c.max)
	switch {
	case errors.Is(err, errTooLarge):
		return none, failure(CodeAnswerTooLarge, false)
	case err != nil:
		return none, broken(ctx, false)
	}
	result, err := ParseResult(body, operationID)
	if err != nil {
		return none, failure(contract.CodeInvalidResourceResult, false)
	}
	return result, nil
}

// broken names why there is no answer.
func broken(ctx context.Context, retryable bool) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure(CodeTimeout, retryable)
	case ctx.Err() != nil:
		return failure(CodeCancelled, retryable)
	default:
		return failure(CodeUnavailable, retryable)
	}
}

// refusal names a status other than 200; nothing was executed.
func refusal(status int) error {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return failure(CodeRequestTooLarge, false)
	case http.StatusTooManyRequests:
		return failure(CodeBusy, true)
	case http.StatusServiceUnavailable:
		return failure(CodeUnavailable, true)
	case http.StatusBadGateway, http.StatusInternalServerError:
		return failure(CodeUnavailable, false)
	case http.StatusGatewayTimeout:
		return failure(CodeTimeout, false)
	default:
		return failure(CodeRefused, false)
	}
}

var errTooLarge = errors.New("body is larger than the limit")

// readAll reads a body of at most limit bytes; hint is its announced length or less than 0.
func readAll(r io.Reader, hint, limit int64) ([]byte, error) {
	if hint > limit {
		return nil, errTooLarge
	}
	var b bytes.Buffer
	if hint > 0 {
		// An announced length is believed only so far before bytes arrive.
		b.Grow(int(min(hint, 1<<20)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read body: %w", err)
	case n > limit:
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}
