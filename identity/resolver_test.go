package identity_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/identity"
	"github.com/sharedos-dev/operator/kernel/contract"
)

func principal(namespace, name string, change ...func(*v1alpha1.Principal)) *v1alpha1.Principal {
	p := &v1alpha1.Principal{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: v1alpha1.PrincipalSpec{
			Address: v1alpha1.NewAddress(v1alpha1.AddressAgent, name), Purposes: []v1alpha1.Purpose{"work", "play"},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func account(namespace, name string) func(*v1alpha1.Principal) {
	return func(p *v1alpha1.Principal) {
		p.Spec.Identities = append(p.Spec.Identities, v1alpha1.Identity{ServiceAccount: &v1alpha1.ServiceAccountIdentity{
			Name: v1alpha1.ObjectName(name), Namespace: v1alpha1.LabelName(namespace),
		}})
	}
}

func user(name string) func(*v1alpha1.Principal) {
	return func(p *v1alpha1.Principal) {
		p.Spec.Identities = append(p.Spec.Identities, v1alpha1.Identity{User: name})
	}
}

func ready(status metav1.ConditionStatus, generation int64) func(*v1alpha1.Principal) {
	return func(p *v1alpha1.Principal) {
		p.Status.Conditions = []metav1.Condition{v1alpha1.Condition(v1alpha1.PrincipalReady, status, "Because", "", generation)}
	}
}

func TestMatch(t *testing.T) {
	const bot = "system:serviceaccount:team:bot"
	other := principal("team", "other", account("team", "other"))
	for name, c := range map[string]struct {
		world []*v1alpha1.Principal
		want  string
	}{
		"nobody claims it":               {[]*v1alpha1.Principal{other}, ""},
		"the one":                        {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot")), other}, "bot"},
		"the same name elsewhere":        {[]*v1alpha1.Principal{principal("team", "bot", account("else", "bot"))}, ""},
		"two claim it":                   {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot")), principal("team", "twin", account("team", "bot"))}, ""},
		"another identity claimed twice": {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), user("ada")), principal("team", "twin", user("ada"))}, ""},
		"a duplicate address": {[]*v1alpha1.Principal{
			principal("team", "bot", account("team", "bot")),
			principal("team", "twin", func(p *v1alpha1.Principal) { p.Spec.Address.AgentID = "bot" }),
		}, ""},
		"an authority that is not there":  {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), func(p *v1alpha1.Principal) { p.Spec.Authority = "nobody" })}, ""},
		"found ready":                     {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), ready(metav1.ConditionTrue, 1))}, "bot"},
		"found not ready":                 {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), ready(metav1.ConditionFalse, 1))}, ""},
		"not known whether":               {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), ready(metav1.ConditionUnknown, 1))}, ""},
		"found not ready before a change": {[]*v1alpha1.Principal{principal("team", "bot", account("team", "bot"), ready(metav1.ConditionFalse, 0))}, "bot"},
	} {
		t.Run(name, func(t *testing.T) {
			var world []v1alpha1.Principal
			for _, p := range c.world {
				world = append(world, *p)
			}
			for range 2 { // whoever comes first
				who, ok := identity.Match(bot, world)
				if ok != (c.want != "") || ok && who.Principal.Name != c.want {
					t.Errorf("matched %t, want %q", ok, c.want)
				}
				slices.Reverse(world)
			}
		})
	}
}

// access allows who is in it: "user namespace/principal".
type access map[string]bool

func (a access) MayUse(_ context.Context, user authenticationv1.UserInfo, namespace, principal string) (bool, error) {
	return a[user.Username+" "+namespace+"/"+principal], nil
}

func TestResolveContext(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	files := &v1alpha1.ToolNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "files"}, Spec: v1alpha1.ToolNamespaceSpec{Enabled: true}}
	off := &v1alpha1.ToolNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "off"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		principal("team", "bot", account("team", "bot"), func(p *v1alpha1.Principal) { p.Spec.Authority, p.Spec.Owner = "alice", "alice" }),
		principal("team", "alice", user("alice@example.com")),
		principal("team", "mute", account("team", "mute"), func(p *v1alpha1.Principal) { p.Spec.Purposes = nil }),
		principal("other", "guest", account("team", "bot")),
		principal("closed", "guest", account("team", "bot")),
		files, off,
	).Build()
	names := map[string]string{
		"bot": "system:serviceaccount:team:bot", "mute": "system:serviceaccount:team:mute", "alice": "alice@example.com",
		"eve": "system:serviceaccount:team:eve", "odd": "system:serviceaccount:team",
	}
	r := &reviews{answer: func(review *authenticationv1.TokenReview) error {
		name, ok := names[review.Spec.Token]
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: name}}
		return nil
	}}
	resolver := &identity.Resolver{
		Tokens: identity.NewTokens(r, newClock().Now), Reader: reader, Clock: newClock().Now,
		Access: access{"system:serviceaccount:team:bot other/guest": true, "alice@example.com team/alice": true},
	}
	at := contract.At(noon)
	bot := contract.AccessContext{
		NamespaceID: "team", Actor: contract.Agent("bot"), Authority: contract.Agent("alice"), Owner: contract.Agent("alice"),
		Purpose: "work", EnabledToolNamespaces: []string{"files"}, Now: at,
	}
	with := func(ac contract.AccessContext, change func(*contract.AccessContext)) *contract.AccessContext {
		change(&ac)
		return &ac
	}
	guest := contract.AccessContext{
		NamespaceID: "other", Actor: contract.Agent("guest"), Authority: contract.Agent("guest"), Owner: contract.Agent("guest"),
		Purpose: "work", EnabledToolNamespaces: []string{}, Now: at,
	}
	type headers = map[string][]string
	for name, c := range map[string]struct {
		headers headers
		want    *contract.AccessContext
		invalid bool // 400 rather than 401
	}{
		"own world":              {headers: headers{"Authorization": {"Bearer bot"}}, want: &bot},
		"own world, named":       {headers: headers{"Authorization": {"bearer bot"}, "X-Sharedos-Namespace": {"team"}}, want: &bot},
		"a purpose":              {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Purpose": {"play"}}, want: with(bot, func(ac *contract.AccessContext) { ac.Purpose = "play" })},
		"another world":          {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Namespace": {"other"}}, want: &guest},
		"a user, used":           {headers: headers{"Authorization": {"Bearer alice"}, "X-Sharedos-Namespace": {"team"}}, want: with(bot, func(ac *contract.AccessContext) { ac.Actor = contract.Agent("alice") })},
		"an unlisted purpose":    {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Purpose": {"rule"}}, invalid: true},
		"two purposes":           {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Purpose": {"work", "play"}}, invalid: true},
		"no purposes":            {headers: headers{"Authorization": {"Bearer mute"}}, invalid: true},
		"two worlds":             {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Namespace": {"team", "other"}}, invalid: true},
		"no token":               {headers: headers{}},
		"an empty token":         {headers: headers{"Authorization": {"Bearer "}}},
		"another scheme":         {headers: headers{"Authorization": {"Basic bot"}}},
		"two tokens":             {headers: headers{"Authorization": {"Bearer bot", "Bearer bot"}}},
		"a token with a space":   {headers: headers{"Authorization": {"Bearer bot more"}}},
		"an unknown token":       {headers: headers{"Authorization": {"Bearer nobody"}}},
		"no Principal":           {headers: headers{"Authorization": {"Bearer eve"}}},
		"a user without a world": {headers: headers{"Authorization": {"Bearer alice"}}},
		"no ServiceAccount":      {headers: headers{"Authorization": {"Bearer odd"}}},
		"a world without use":    {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Namespace": {"closed"}}},
		"a world that is none":   {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Namespace": {"no/where"}}},
		"an empty world":         {headers: headers{"Authorization": {"Bearer bot"}, "X-Sharedos-Namespace": {"nowhere"}}},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			req.Header = http.Header(c.headers)
			got, err := resolver.ResolveContext(req)
			_, invalid := errors.AsType[*httpapi.InvalidRequestError](err)
			switch {
			case c.want != nil:
				if diff := cmp.Diff(*c.want, got); err != nil || diff != "" {
					t.Errorf("%v; context (-want +got):\n%s", err, diff)
				}
			case invalid != c.invalid || !invalid && !errors.Is(err, httpapi.ErrUnauthenticated):
				t.Errorf("%v; want a 400: %t, else a 401", err, c.invalid)
			}
		})
	}
}

// TestAFailureIsNoRefusal: what cannot be established is neither allowed nor said to
// be the caller's fault.
func TestAFailureIsNoRefusal(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &reviews{answer: func(*authenticationv1.TokenReview) error { return errors.New("connection refused") }}
	resolver := &identity.Resolver{
		Tokens: identity.NewTokens(r, newClock().Now), Reader: fake.NewClientBuilder().WithScheme(scheme).Build(), Access: access{}, Clock: newClock().Now,
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.Header.Set("Authorization", "Bearer "+token(newClock().in(time.Hour), ""))
	if _, err := resolver.ResolveContext(req); err == nil || errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("%v, want a failure", err)
	}
}

func TestMayUseAsksAboutTheRequestsUser(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var reader client.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(principal("team", "bot", account("team", "bot"))).Build()
	resolver := &identity.Resolver{
		Tokens: identity.NewTokens(&reviews{}, newClock().Now), Reader: reader, Clock: newClock().Now,
		Access: access{"system:serviceaccount:team:bot team/alice": true},
	}
	got := map[string]bool{}
	handler := identity.WithCaller(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		before, err := resolver.MayUse(r.Context(), "team", "alice")
		if _, resolved := resolver.ResolveContext(r); resolved != nil || err != nil {
			t.Errorf("%v, %v", resolved, err)
		}
		after, err := resolver.MayUse(r.Context(), "team", "alice")
		if err != nil {
			t.Error(err)
		}
		other, err := resolver.MayUse(r.Context(), "team", "bob")
		if err != nil {
			t.Error(err)
		}
		got = map[string]bool{"before": before, "after": after, "other": other}
	}))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.Header.Set("Authorization", "Bearer "+token(newClock().in(time.Hour), ""))
	handler.ServeHTTP(httptest.NewRecorder(), req)
	if diff := cmp.Diff(map[string]bool{"before": false, "after": true, "other": false}, got); diff != "" {
		t.Errorf("may use (-want +got):\n%s", diff)
	}
	if outside, err := resolver.MayUse(t.Context(), "team", "alice"); outside || err != nil {
		t.Errorf("outside of a request: %t, %v", outside, err)
	}
}
