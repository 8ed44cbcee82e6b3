package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestMetricsAreForWhoMayReadThem(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		header  string
		failing string
		want    int
	}{
		"nobody":                  {want: http.StatusUnauthorized},
		"another scheme":          {header: "Basic good", want: http.StatusUnauthorized},
		"an empty token":          {header: "Bearer ", want: http.StatusUnauthorized},
		"a token of nobody":       {header: "Bearer bad", want: http.StatusUnauthorized},
		"somebody who may not":    {header: "Bearer other", want: http.StatusForbidden},
		"somebody who may":        {header: "Bearer good", want: http.StatusOK},
		"no token review":         {header: "Bearer good", failing: "tokenreviews", want: http.StatusServiceUnavailable},
		"no authorization review": {header: "Bearer good", failing: "subjectaccessreviews", want: http.StatusServiceUnavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clientset := fake.NewClientset()
			clientset.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetResource().Resource == c.failing {
					return true, nil, errors.New("away")
				}
				switch o := action.(clienttesting.CreateAction).GetObject().(type) {
				case *authenticationv1.TokenReview:
					o.Status.Authenticated = o.Spec.Token != "bad"
					o.Status.User.Username = o.Spec.Token
					return true, o, nil
				case *authorizationv1.SubjectAccessReview:
					at := o.Spec.NonResourceAttributes
					o.Status.Allowed = o.Spec.User == "good" && at.Path == "/metrics" && at.Verb == "get"
					return true, o, nil
				}
				return false, nil, nil
			})
			served := false
			handler, err := newMetricsFilter(clientset)(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != c.want || served != (c.want == http.StatusOK) {
				t.Errorf("status %d, served %t; want %d", w.Code, served, c.want)
			}
		})
	}
}
