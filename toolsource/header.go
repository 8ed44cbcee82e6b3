package toolsource

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// headers reads the header values at every request, so that a rotated Secret is
// picked up.
func (c *Connections) headers(namespace string, from []v1alpha1.HeaderFrom) func(context.Context) (http.Header, error) {
	if len(from) == 0 {
		return nil
	}
	return func(ctx context.Context) (http.Header, error) {
		out := http.Header{}
		for _, h := range from {
			value, err := c.secretKey(ctx, namespace, h.SecretKeyRef)
			if err != nil {
				return nil, err
			}
			text, err := headerValue(h.Prefix, value)
			if err != nil {
				return nil, fmt.Errorf("secret %q, key %q: %w", h.SecretKeyRef.Name, h.SecretKeyRef.Key, err)
			}
			out.Set(h.Name, text)
		}
		return out, nil
	}
}

// headerCache holds header values between two looks at their Secrets: a call does not
// wait for the API server. A value that was refused is read again at once.
type headerCache struct {
	read func(context.Context) (http.Header, error)

	mu   sync.Mutex
	held http.Header
}

func (h *headerCache) get(ctx context.Context, fresh bool) (http.Header, error) {
	h.mu.Lock()
	held := h.held
	h.mu.Unlock()
	if held != nil && !fresh {
		return held, nil
	}
	header, err := h.read(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.held = nil // what is gone is not used on
		return nil, err
	}
	h.held = header
	return header, nil
}

// headerValue is a Secret's value without the line end that an editor left there.
func headerValue(prefix string, value []byte) (string, error) {
	text := prefix + strings.TrimRight(string(value), "\r\n")
	for i := range len(text) {
		if b := text[i]; b != '\t' && (b < 0x20 || b == 0x7f) {
			return "", fmt.Errorf("%w: a header's value holds a control character", ErrMaterial)
		}
	}
	return text, nil
}
