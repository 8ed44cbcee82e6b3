package identity

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Limits of [Tokens].
const (
	// MaxReviewAge is how long a review holds, unless the token expires before: that
	// long the token of a deleted ServiceAccount is still accepted. Source: spec page
	// 06, "Identity on Kubernetes", which allows a minute.
	MaxReviewAge = 30 * time.Second
	// MaxReviews is how many reviews are remembered; the oldest goes first.
	MaxReviews = 4096
	// maxAsking is how many reviews may be under way at once: a flood of made-up
	// tokens must not become one of questions to the API server.
	maxAsking = 16
	// reviewTimeout bounds one question to the API server, which several callers may
	// be waiting for.
	reviewTimeout = 10 * time.Second
)

// ErrRefused means that a token is not a valid one for the HTTP API.
var ErrRefused = errors.New("not a valid token for the HTTP API")

// TokenReviews creates TokenReviews; client-go's TokenReviewInterface is one.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// Tokens reviews bearer tokens and remembers what the API server said. A token is
// remembered by its hash and never kept. It is safe for concurrent use.
type Tokens struct {
	reviews TokenReviews
	clock   func() time.Time
	flight  singleflight.Group
	asking  chan struct{}

	mu    sync.Mutex
	known map[digest]*list.Element
	order *list.List // oldest first
	stats TokenStats
}

// TokenStats are about all tokens since the process began.
type TokenStats struct {
	// Hits were answered by a remembered review, Misses were not.
	Hits, Misses uint64
	// Held is how many reviews are remembered now, [MaxReviews] at most.
	Held int
}

// Stats returns how the memory of reviews does.
func (t *Tokens) Stats() TokenStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.stats
	out.Held = t.order.Len()
	return out
}

type digest [sha256.Size]byte

// reviewed is one remembered review.
type reviewed struct {
	digest digest
	user   authenticationv1.UserInfo
	until  time.Time
}

// NewTokens returns Tokens over the TokenReview API.
func NewTokens(reviews TokenReviews, clock func() time.Time) *Tokens {
	return &Tokens{reviews: reviews, clock: clock, known: map[digest]*list.Element{}, order: list.New(), asking: make(chan struct{}, maxAsking)}
}

// User returns the user that the token authenticates for the audience "sharedos".
// [ErrRefused] means that it authenticates nobody; any other error that this could
// not be established.
func (t *Tokens) User(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	key := digest(sha256.Sum256([]byte(token)))
	if user, ok := t.remembered(key); ok {
		return user, nil
	}
	expiry := expiryOf(token)
	if !expiry.IsZero() && !t.clock().Before(expiry) {
		return authenticationv1.UserInfo{}, ErrRefused // nobody has to be asked
	}
	// Those who come with the same token wait for one answer. The question outlives
	// the caller who asked first, because the others need the answer too.
	answer := t.flight.DoChan(string(key[:]), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		select {
		case t.asking <- struct{}{}:
			defer func() { <-t.asking }()
		case <-asking.Done():
			return authenticationv1.UserInfo{}, fmt.Errorf("wait to review a token: %w", context.Cause(asking))
		}
		user, err := t.review(asking, token)
		if err == nil {
			t.remember(key, user, expiry)
		}
		return user, err
	})
	select {
	case got := <-answer:
		user, _ := got.Val.(authenticationv1.UserInfo)
		return user, got.Err
	case <-ctx.Done():
		return authenticationv1.UserInfo{}, context.Cause(ctx)
	}
}

func (t *Tokens) review(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	review, err := t.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{v1alpha1.AudienceAPI}},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("review token: %w", err)
	}
	s := &review.Status
	// An answer without audiences is that of an authenticator which knows none.
	if !s.Authenticated || s.Error != "" || !slices.Contains(s.Audiences, v1alpha1.AudienceAPI) || s.User.Username == "" {
		return authenticationv1.UserInfo{}, ErrRefused
	}
	return s.User, nil
}

func (t *Tokens) remembered(key digest) (authenticationv1.UserInfo, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	element, ok := t.known[key]
	if !ok {
		t.stats.Misses++
		return authenticationv1.UserInfo{}, false
	}
	entry := element.Value.(*reviewed) //nolint:errcheck,forcetypeassert // the list holds nothing else
	if !t.clock().Before(entry.until) {
		t.drop(element)
		t.stats.Misses++
		return authenticationv1.UserInfo{}, false
	}
	t.stats.Hits++
	return entry.user, true
}

// remember keeps a review until it is old or its token expires, whichever comes
// first. A token that does not say when it expires is reviewed every time.
func (t *Tokens) remember(key digest, user authenticationv1.UserInfo, expiry time.Time) {
	if expiry.IsZero() {
		return
	}
	until := t.clock().Add(MaxReviewAge)
	if expiry.Before(until) {
		until = expiry
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.known[key]; ok {
		t.drop(old)
	}
	t.known[key] = t.order.PushBack(&reviewed{digest: key, user: user, until: until})
	for t.order.Len() > MaxReviews {
		t.drop(t.order.Front())
	}
}

func (t *Tokens) drop(element *list.Element) {
	entry := element.Value.(*reviewed) //nolint:errcheck,forcetypeassert // the list holds nothing else
	delete(t.known, entry.digest)
	t.order.Remove(element)
}
