package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/server"
)

// tokenReviews is an API server that knows which tokens are valid now.
type tokenReviews struct {
	valid map[string]bool
	asked int
	err   error
}

func (r *tokenReviews) Create(_ context.Context, in *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.asked++
	if r.err != nil {
		return nil, r.err
	}
	if !r.valid[in.Spec.Token] {
		return &authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{Error: "expired"}}, nil
	}
	return &authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{bridge.Audience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:ns:agent", Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/pod-name": {"harness"}, "authentication.kubernetes.io/pod-uid": {"uid-1"},
		}},
	}}, nil
}

// TestATokenIsRotated as the kubelet does it: the next one is there before the last
// has expired. Both are the same pod's, the new one is reviewed by itself, and the
// old one stops as the API server says so, half a minute later at most.
func TestATokenIsRotated(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	api := &tokenReviews{valid: map[string]bool{"first": true}}
	reviewer := server.NewAPIReviewer(api, func() time.Time { return now })
	review := func(token string, accepted bool, asked int) {
		t.Helper()
		before := api.asked
		pod, err := reviewer.Review(t.Context(), token)
		if accepted && (err != nil || pod.UID != "uid-1" || pod.Namespace != "ns") || !accepted && !errors.Is(err, server.ErrUnauthenticated) {
			t.Errorf("%s: %+v %v, want accepted %t", token, pod, err, accepted)
		}
		if got := api.asked - before; got != asked {
			t.Errorf("%s: the API server was asked %d times, want %d", token, got, asked)
		}
	}
	review("second", false, 1) // not issued yet
	review("first", true, 1)
	api.valid["second"] = true
	review("second", true, 1) // a refusal is not remembered
	review("first", true, 0)
	review("second", true, 0)
	delete(api.valid, "first") // its ten minutes are over
	now = now.Add(30 * time.Second)
	review("first", false, 1)
	review("second", true, 1)
	api.err = errors.New("away")
	review("second", true, 0)
	now = now.Add(time.Minute)
	if _, err := reviewer.Review(t.Context(), "second"); err == nil || errors.Is(err, server.ErrUnauthenticated) {
		t.Errorf("while the API server is away: %v; want an error that blames no token", err)
	}
}
