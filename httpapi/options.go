package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxBodyBytes = 4 << 20
	DefaultReadTimeout  = 30 * time.Second
	DefaultWriteTimeout = 30 * time.Second
	DefaultChallenge    = `Bearer realm="sharedos"`
)

// Options configure the handler. API and Resolver are required.
type Options struct {
	API      API
	Resolver ContextResolver
	// OnError is told what a caller is not: the cause of every answer of 500, of every
	// refusal of the resolver, and of every [*PermissionError]. It must not block.
	OnError func(err error, r *http.Request, requestID string)
	// MaxBodyBytes is the largest body that is taken; one byte more is a 413
	// payload_too_large. The default is [DefaultMaxBodyBytes].
	MaxBodyBytes int64
	// ReadTimeout bounds the arrival of a body, WriteTimeout the departure of an
	// answer once there is one. Work between the two is bounded by neither. A negative
	// value is no limit. The defaults are [DefaultReadTimeout] and
	// [DefaultWriteTimeout].
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	// Prefix is where the routes are mounted, as in "/sharedos"; empty is the root. It
	// begins with a slash, does not end with one, and consists of A-Z a-z 0-9 - . _ ~
	// between slashes.
	Prefix string
	// NewRequestID mints the request id of a request that brings no usable one. The
	// default is random.
	NewRequestID func() string
	// Challenge is the WWW-Authenticate header of a 401 (RFC 9110, 11.6.1). The default
	// is [DefaultChallenge].
	Challenge string
	// CallerTraces leaves the trace to the caller where a resolved context has an empty
	// TraceID: it is then the traceId of the body (of its message, for a turn), and the
	// request id where the body has none. A trace correlates; it is never authority.
	// Without CallerTraces an empty TraceID is a 500 invalid_access_context, and the
	// kernel refuses a body whose traceId is not the context's.
	CallerTraces bool
}

// ErrIncompleteOptions says that a required option is missing.
var ErrIncompleteOptions = errors.New("API and Resolver are required")

func (o *Options) complete() error {
	if o.API == nil || o.Resolver == nil {
		return ErrIncompleteOptions
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return err
	}
	if o.MaxBodyBytes < 0 {
		return fmt.Errorf("MaxBodyBytes is %d, must be positive", o.MaxBodyBytes)
	}
	setDefault(&o.MaxBodyBytes, DefaultMaxBodyBytes)
	setDefault(&o.ReadTimeout, DefaultReadTimeout)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	setDefault(&o.Challenge, DefaultChallenge)
	if o.OnError == nil {
		o.OnError = func(error, *http.Request, string) {}
	}
	if o.NewRequestID == nil {
		o.NewRequestID = rand.Text
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// checkPrefix refuses a prefix that a request could spell in two ways.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if prefix[0] != '/' {
		return fmt.Errorf("prefix %q must begin with a slash", prefix)
	}
	for segment := range strings.SplitSeq(prefix[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("prefix %q must not end with a slash or hold an empty, . or .. segment", prefix)
		}
		for i := range len(segment) {
			if !unreserved(segment[i]) {
				return fmt.Errorf("prefix %q must consist of A-Z a-z 0-9 - . _ ~ between slashes", prefix)
			}
		}
	}
	return nil
}

// unreserved characters are never escaped (RFC 3986, 2.3).
func unreserved(b byte) bool {
	return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') || strings.IndexByte("-._~", b) >= 0
}
