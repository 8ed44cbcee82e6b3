package server

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/bridge"
)

// ErrUnauthenticated means that a token is no valid token of a pod for the kernel.
var ErrUnauthenticated = errors.New("not a pod's token for the kernel")

// Pod is the pod that a ServiceAccount token is bound to.
type Pod struct {
	Namespace      string
	Name           string
	UID            string
	ServiceAccount string
}

// Reviewer establishes which pod a token belongs to. [ErrUnauthenticated] means
// that it belongs to none; any other error that it could not be established.
type Reviewer interface {
	Review(ctx context.Context, token string) (Pod, error)
}

// TokenReviews creates TokenReviews; client-go's TokenReviewInterface is one.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// The extra fields by which the API server names the pod a token is bound to.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// Limits of the cache of reviews.
const (
	// reviewLifetime is how long a review holds: that long a deleted pod's token
	// is still accepted, on a turn that is bound to that very pod.
	reviewLifetime = 30 * time.Second
	maxReviews     = 16384
)

// APIReviewer asks the API server and remembers its positive answers briefly.
type APIReviewer struct {
	reviews TokenReviews
	clock   func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]*list.Element
	order *list.List // oldest first
}

type knownToken struct {
	digest [sha256.Size]byte
	pod    Pod
	until  time.Time
}

// NewAPIReviewer returns a Reviewer over the TokenReview API.
func NewAPIReviewer(reviews TokenReviews, clock func() time.Time) *APIReviewer {
	return &APIReviewer{reviews: reviews, clock: clock, known: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// Review implements [Reviewer].
func (a *APIReviewer) Review(ctx context.Context, token string) (Pod, error) {
	digest := sha256.Sum256([]byte(token))
	if pod, ok := a.remembered(digest); ok {
		return pod, nil
	}
	review, err := a.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{bridge.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return Pod{}, fmt.Errorf("review token: %w", err)
	}
	pod, ok := podOf(&review.Status)
	if !ok {
		return Pod{}, ErrUnauthenticated
	}
	a.remember(digest, pod)
	return pod, nil
}

// podOf reads the pod out of a review; all of it must be there.
func podOf(s *authenticationv1.TokenReviewStatus) (Pod, bool) {
	if !s.Authenticated || s.Error != "" || len(s.Audiences) != 1 || s.Audiences[0] != bridge.Audience {
		return Pod{}, false
	}
	namespace, account, ok := serviceAccount(s.User.Username)
	if !ok {
		return Pod{}, false
	}
	name, uid := s.User.Extra[extraPodName], s.User.Extra[extraPodUID]
	if len(name) != 1 || len(uid) != 1 || name[0] == "" || uid[0] == "" {
		return Pod{}, false
	}
	return Pod{Namespace: namespace, Name: name[0], UID: uid[0], ServiceAccount: account}, true
}

func (a *APIReviewer) remembered(digest [sha256.Size]byte) (Pod, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element, ok := a.known[digest]
	if !ok {
		return Pod{}, false
	}
	entry := element.Value.(*knownToken) //nolint:errcheck,forcetypeassert // the list holds nothing else
	if !a.clock().Before(entry.until) {
		a.drop(element)
		return Pod{}, false
	}
	return entry.pod, true
}

func (a *APIReviewer) remember(digest [sha256.Size]byte, pod Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.known[digest]; ok {
		a.drop(old)
	}
	a.known[digest] = a.order.PushBack(&knownToken{digest: digest, pod: pod, until: a.clock().Add(reviewLifetime)})
	for a.order.Len() > maxReviews {
		a.drop(a.order.Front())
	}
}

func (a *APIReviewer) drop(element *list.Element) {
	entry := element.Value.(*knownToken) //nolint:errcheck,forcetypeassert // the list holds nothing else
	delete(a.known, entry.digest)
	a.order.Remove(element)
}
