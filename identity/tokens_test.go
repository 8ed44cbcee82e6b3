package identity_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/identity"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// clock is set by the tests.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(noon.UnixNano())
	return c
}

func (c *clock) Now() time.Time         { return time.Unix(0, c.now.Load()).UTC() }
func (c *clock) pass(d time.Duration)   { c.now.Add(int64(d)) }
func (c *clock) in(d time.Duration) any { return c.Now().Add(d).Unix() }
func token(exp any, salt string) string {
	claims := fmt.Sprintf(`{"exp":%v,"salt":%q}`, exp, salt)
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

// reviews is an API server's TokenReview.
type reviews struct {
	asked  atomic.Int32
	answer func(*authenticationv1.TokenReview) error
}

func (r *reviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.asked.Add(1)
	out := review.DeepCopy()
	if r.answer != nil {
		return out, r.answer(out)
	}
	out.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: out.Spec.Audiences, User: authenticationv1.UserInfo{Username: "system:serviceaccount:team:bot"},
	}
	return out, nil
}

func TestAReviewIsRememberedForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		after time.Duration
		asked int32
	}{
		"at once":                       {token(newClock().in(time.Hour), ""), 0, 1},
		"just before it is old":         {token(newClock().in(time.Hour), ""), identity.MaxReviewAge - 1, 1},
		"once it is old":                {token(newClock().in(time.Hour), ""), identity.MaxReviewAge, 2},
		"just before the token expires": {token(newClock().in(5*time.Second), ""), 5*time.Second - 1, 1},
		"without an expiry":             {"opaque", 0, 2},
		"with an expiry that is text":   {token(`"soon"`, ""), 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c2, r := newClock(), &reviews{}
			tokens := identity.NewTokens(r, c2.Now)
			for range 2 {
				user, err := tokens.User(t.Context(), c.token)
				if err != nil || user.Username != "system:serviceaccount:team:bot" {
					t.Fatalf("%q, %v", user.Username, err)
				}
				c2.pass(c.after)
			}
			if got := r.asked.Load(); got != c.asked {
				t.Errorf("the API server was asked %d times, want %d", got, c.asked)
			}
			held := 1
			if name == "without an expiry" || name == "with an expiry that is text" {
				held = 0
			}
			want := identity.TokenStats{Hits: uint64(2 - c.asked), Misses: uint64(c.asked), Held: held}
			if got := tokens.Stats(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestAnExpiredTokenIsRefusedAlthoughRemembered(t *testing.T) {
	c, r := newClock(), &reviews{}
	tokens := identity.NewTokens(r, c.Now)
	mine := token(c.in(5*time.Second), "")
	if _, err := tokens.User(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	c.pass(5 * time.Second)
	if _, err := tokens.User(t.Context(), mine); !errors.Is(err, identity.ErrRefused) {
		t.Errorf("%v, want ErrRefused", err)
	}
	if got := r.asked.Load(); got != 1 {
		t.Errorf("the API server was asked %d times about a token that says itself that it is over", got)
	}
}

func TestWhoIsRefused(t *testing.T) {
	status := func(change func(*authenticationv1.TokenReviewStatus)) func(*authenticationv1.TokenReview) error {
		return func(r *authenticationv1.TokenReview) error {
			r.Status = authenticationv1.TokenReviewStatus{
				Authenticated: true, Audiences: []string{"sharedos"}, User: authenticationv1.UserInfo{Username: "u"},
			}
			change(&r.Status)
			return nil
		}
	}
	unreachable := errors.New("connection refused")
	for name, c := range map[string]struct {
		answer func(*authenticationv1.TokenReview) error
		want   error
	}{
		"not authenticated":      {status(func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }), identity.ErrRefused},
		"an error beside":        {status(func(s *authenticationv1.TokenReviewStatus) { s.Error = "odd" }), identity.ErrRefused},
		"no audience understood": {status(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }), identity.ErrRefused},
		"another audience":       {status(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"sharedos-kernel"} }), identity.ErrRefused},
		"no name":                {status(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "" }), identity.ErrRefused},
		"no answer":              {func(*authenticationv1.TokenReview) error { return unreachable }, unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			secret := token(newClock().in(time.Hour), "secret")
			r := &reviews{answer: c.answer}
			tokens := identity.NewTokens(r, newClock().Now)
			for range 2 {
				_, err := tokens.User(t.Context(), secret)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the token is in the error: %v", err)
				}
			}
			if got := r.asked.Load(); got != 2 {
				t.Errorf("asked %d times: what was not established must not be remembered", got)
			}
		})
	}
}

func TestManyWithOneTokenAskOnce(t *testing.T) {
	release := make(chan struct{})
	r := &reviews{}
	r.answer = func(review *authenticationv1.TokenReview) error {
		<-release
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: "u"}}
		return nil
	}
	c := newClock()
	tokens := identity.NewTokens(r, c.Now)
	mine := token(c.in(time.Hour), "")
	// The first of them goes away while everybody waits for its question.
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := tokens.User(first, mine); gone <- err }()
	for r.asked.Load() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nobody asked")
		}
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who went away: %v", err)
	}
	var waiting sync.WaitGroup
	for range 16 {
		waiting.Go(func() {
			if _, err := tokens.User(t.Context(), mine); err != nil {
				t.Errorf("who stayed: %v", err)
			}
		})
	}
	close(release)
	waiting.Wait()
	if got := r.asked.Load(); got != 1 {
		t.Errorf("asked %d times, want 1", got)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	c, r := newClock(), &reviews{}
	tokens := identity.NewTokens(r, c.Now)
	for i := range identity.MaxReviews + 1 {
		if _, err := tokens.User(t.Context(), token(c.in(time.Hour), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	before := r.asked.Load()
	for i, asked := range map[int]int32{identity.MaxReviews: 0, 0: 1} {
		now := r.asked.Load()
		if _, err := tokens.User(t.Context(), token(c.in(time.Hour), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if got := r.asked.Load() - now; got != asked {
			t.Errorf("token %d was asked about %d times, want %d", i, got, asked)
		}
	}
	if before != identity.MaxReviews+1 {
		t.Errorf("asked %d times for %d tokens", before, identity.MaxReviews+1)
	}
}
