package identity

import (
	"context"
	"net/http"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// caller is the Kubernetes user of one request, once it is known.
type caller struct {
	mu   sync.Mutex
	user *authenticationv1.UserInfo
}

// WithCaller keeps the user whom the resolver finds for each request, so that
// [Resolver.MayUse] can ask about it while the request is served.
func WithCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, &caller{})))
	})
}

func remember(ctx context.Context, user authenticationv1.UserInfo) {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.user = &user
	}
}

// MayUse reports whether the user who makes the request has the verb use on the
// Principal. A request without a user may use nobody.
func (r *Resolver) MayUse(ctx context.Context, namespace, principal string) (bool, error) {
	c, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return false, nil
	}
	c.mu.Lock()
	user := c.user
	c.mu.Unlock()
	if user == nil {
		return false, nil
	}
	return r.Access.MayUse(ctx, *user, namespace, principal)
}
