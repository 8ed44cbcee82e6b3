package injection_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/injection"
)

// users is an [injection.Authorizer] that remembers what it was asked.
type users struct {
	mu    sync.Mutex
	may   string
	asked []string
}

func (u *users) MayUse(_ context.Context, _ authenticationv1.UserInfo, _, principal string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, principal)
	return principal == u.may, nil
}

// TestTheCacheDecidesNothing: whatever Turn the cache has, the one in the API server is
// decided about.
func TestTheCacheDecidesNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := func(objects ...client.Object) client.Reader {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	turn := func(uid types.UID, principal v1alpha1.ObjectName) *v1alpha1.Turn {
		return &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{Namespace: "w", Name: "t", UID: uid}, Spec: v1alpha1.TurnSpec{Principal: principal}}
	}
	ended := turn("1", "alice")
	v1alpha1.SetCondition(&ended.Status.Conditions, v1alpha1.Condition(
		v1alpha1.TurnConditionFinished, metav1.ConditionTrue, v1alpha1.TurnStateSucceeded, "", 1))
	for name, c := range map[string]struct {
		live, cache client.Reader
		allowed     bool
		asked       []string
	}{
		"no cache":                   {reader(turn("1", "alice")), nil, true, []string{"alice"}},
		"not in the cache":           {reader(turn("1", "alice")), reader(), true, []string{"alice"}},
		"in the cache":               {reader(turn("1", "alice")), reader(turn("1", "alice")), true, []string{"alice"}},
		"another's now":              {reader(turn("2", "bob")), reader(turn("1", "alice")), false, []string{"alice", "bob"}},
		"was another's":              {reader(turn("2", "alice")), reader(turn("1", "bob")), true, []string{"bob", "alice"}},
		"gone":                       {reader(), reader(turn("1", "alice")), false, []string{"alice"}},
		"ended since the cache knew": {reader(ended), reader(turn("1", "alice")), false, []string{"alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			authorizer := &users{may: "alice"}
			hook := &injection.Webhook{
				Reader: c.live, Cache: c.cache, Config: func() (injection.Config, error) { return config, nil },
				Authorizer: authorizer, ManagerUser: "manager", Decoder: admission.NewDecoder(scheme),
			}
			raw, err := json.Marshal(pod())
			if err != nil {
				t.Fatal(err)
			}
			response := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "w", Object: runtime.RawExtension{Raw: raw}, UserInfo: authenticationv1.UserInfo{Username: "somebody"},
			}})
			if response.Allowed != c.allowed || response.Allowed && len(response.Patches) == 0 {
				t.Errorf("allowed %t with %d patches, want %t: %v", response.Allowed, len(response.Patches), c.allowed, response.Result)
			}
			if !slices.Equal(authorizer.asked, c.asked) {
				t.Errorf("asked about %v, want %v", authorizer.asked, c.asked)
			}
		})
	}
}
