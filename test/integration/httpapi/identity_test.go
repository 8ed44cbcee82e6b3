package httpapi

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/identity"
)

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

// nobody is the one answer to everybody who is not known, but for the request's id.
func nobody(t *testing.T, what string, a answer) {
	t.Helper()
	const want = `{"error":{"code":"unauthenticated","message":"the request does not say who is calling in a way this server accepts","requestId":""}}`
	if got := requestID.ReplaceAllString(a.body, `"requestId":""`); a.status != http.StatusUnauthorized || got != want {
		t.Errorf("%s: %d %s, want 401 %s", what, a.status, got, want)
	}
}

// foreign is a token of another cluster's issuer for the same names.
func foreign(t *testing.T, namespace, account string) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	signed := part(`{"alg":"RS256","typ":"JWT"}`) + "." + part(fmt.Sprintf(
		`{"iss":"https://other.example","aud":["sharedos"],"exp":%d,"iat":%d,"nbf":%d,"sub":"system:serviceaccount:%s:%s"}`,
		now+3600, now, now, namespace, account))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, sum[:])
	must(t, err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestWhoIsNobody(t *testing.T) {
	o, w := start(t), newWorld(t, "nobody")
	w.account("stranger")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	for name, token := range map[string]string{
		"no token": "", "no token at all": "x", "another audience": w.token("bot", "elsewhere"),
		"the bridge's audience": w.token("bot", v1alpha1.AudienceKernel), "another cluster's issuer": foreign(t, w.namespace, "bot"),
		"a changed signature": mine[:len(mine)-4] + "AAAA", "a ServiceAccount that is no Principal": w.token("stranger", v1alpha1.AudienceAPI),
	} {
		nobody(t, name, o.get(t, "/v1/tools", token))
		nobody(t, name+", unknown path", o.get(t, "/v1/nothing", token))
	}
	if a := o.get(t, "/health", ""); a.status != http.StatusOK {
		t.Errorf("/health takes no token: %d", a.status)
	}
	nobody(t, "a world without such a Principal", o.get(t, "/v1/tools", mine, "x-sharedos-namespace", "default"))
}

func TestAnExpiredToken(t *testing.T) {
	o, w := start(t), newWorld(t, "expired")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	o.pass(2 * time.Hour)
	nobody(t, "an expired token", o.get(t, "/v1/tools", mine))
}

func TestADeletedServiceAccount(t *testing.T) {
	o, w := start(t), newWorld(t, "deleted")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	must(t, server.clientset.CoreV1().ServiceAccounts(w.namespace).Delete(t.Context(), "bot", deleteNow))
	if a := o.get(t, "/v1/tools", mine); a.status != http.StatusOK {
		t.Errorf("a review holds for a while: %d", a.status)
	}
	// The API server remembers tokens too, for ten seconds. Few looks: the token itself
	// must not be over.
	looks := 0
	err := wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		o.pass(identity.MaxReviewAge)
		looks++
		a, err := o.call(ctx, http.MethodGet, "/v1/tools", mine, "")
		return a.status == http.StatusUnauthorized, err
	})
	if err != nil || time.Duration(looks)*identity.MaxReviewAge > 50*time.Minute {
		t.Fatalf("after %d looks: %v", looks, err)
	}
	nobody(t, "a deleted ServiceAccount", o.get(t, "/v1/tools", mine))
}

func TestAPrincipalThatIsGone(t *testing.T) {
	o, w := start(t), newWorld(t, "gone")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	principal := &v1alpha1.Principal{ObjectMeta: w.meta("bot")}
	must(t, server.client.Delete(t.Context(), principal))
	eventually(t, "nobody any more", func(ctx context.Context) bool {
		a, err := o.call(ctx, http.MethodGet, "/v1/tools", mine, "")
		return err == nil && a.status == http.StatusUnauthorized
	})
}

func TestTwoPrincipalsOfOneIdentity(t *testing.T) {
	o, w := start(t), newWorld(t, "twins")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	o.known(t, mine)
	w.principal("twin", func(s *v1alpha1.PrincipalSpec) {
		s.Identities[0].ServiceAccount.Name = "bot"
	})
	eventually(t, "nobody any more", func(ctx context.Context) bool {
		a, err := o.call(ctx, http.MethodGet, "/v1/tools", mine, "")
		return err == nil && a.status == http.StatusUnauthorized
	})
	nobody(t, "two of them", o.get(t, "/v1/tools", mine))
}

func TestAnotherWorld(t *testing.T) {
	o, w, other := start(t), newWorld(t, "home"), newWorld(t, "abroad")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	guest := other.principal("guest", func(s *v1alpha1.PrincipalSpec) {
		s.Identities[0].ServiceAccount.Name, s.Identities[0].ServiceAccount.Namespace = "bot", v1alpha1.LabelName(w.namespace)
	})
	o.known(t, mine)
	o.known(t, other.token("bot", v1alpha1.AudienceAPI))
	nobody(t, "without the verb use", o.get(t, "/v1/tools", mine, "x-sharedos-namespace", other.namespace))
	other.create(&rbacv1.Role{ObjectMeta: other.meta("use-guest"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"sharedos.dev"}, Resources: []string{"principals"}, Verbs: []string{"use"}, ResourceNames: []string{guest.Name},
	}}})
	other.create(&rbacv1.RoleBinding{
		ObjectMeta: other.meta("use-guest"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "use-guest"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "bot"}},
	})
	other.grant("guest", "files", []v1alpha1.PathSegment{"Work"}, "list")
	eventually(t, "with the verb use", func(ctx context.Context) bool {
		a, err := o.call(ctx, http.MethodGet, "/v1/reach", mine, "", "x-sharedos-namespace", other.namespace)
		return err == nil && a.status == http.StatusOK && a.body == `{"status":"computed","reach":[{"namespace":"files","path":["Work"],"actions":["list"],"scope":"descendants"}]}`
	})
	if a := o.get(t, "/v1/reach", mine); a.status != http.StatusOK || a.body != `{"status":"computed","reach":[]}` {
		t.Errorf("at home it is itself: %d %s", a.status, a.body)
	}
}

func TestPurposes(t *testing.T) {
	o, w := start(t), newWorld(t, "purposes")
	mine := w.token("bot", v1alpha1.AudienceAPI)
	w.create(&v1alpha1.Grant{ObjectMeta: w.meta("play"), Spec: v1alpha1.GrantSpec{
		Issuer: "alice", Subject: "bot", Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: "files", Path: []v1alpha1.PathSegment{"Games"}}, Actions: []v1alpha1.Action{"read"}, Scope: v1alpha1.ScopeExact,
		}},
		Constraints: &v1alpha1.GrantConstraints{Purposes: []v1alpha1.Purpose{"play"}},
	}})
	o.known(t, mine)
	const need = `{"resource":{"namespace":"files","path":["Games"]},"action":"read"}`
	eventually(t, "the grant is known", func(ctx context.Context) bool {
		a, err := o.call(ctx, http.MethodPost, "/v1/authorize", mine, need, "x-sharedos-purpose", "play")
		return err == nil && a.body == `{"allowed":true,"reasonCode":"allowed","matchedGrantId":"play"}`
	})
	if a := o.post(t, "/v1/authorize", mine, need); a.status != http.StatusOK || a.code() != "" || a.body[:16] != `{"allowed":false` {
		t.Errorf("the first purpose is the default: %d %s", a.status, a.body)
	}
	if a := o.post(t, "/v1/authorize", mine, need, "x-sharedos-purpose", "rule"); a.status != http.StatusBadRequest || a.code() != "invalid_request" {
		t.Errorf("an unlisted purpose: %d %s", a.status, a.body)
	}
}
