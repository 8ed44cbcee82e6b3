package manager

import (
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sharedos-dev/operator/injection"
)

// maxMetricsReviews is how many scrapes may be under review at once; more are asked
// to come back. A flood of made-up tokens must not become one of reviews.
const maxMetricsReviews = 4

// metricsAccess lets in who may "get" the non-resource URL /metrics, as Kubernetes'
// own components do: metrics name worlds and what was refused in them.
func metricsAccess(config *rest.Config, client *http.Client) (server.Filter, error) {
	clientset, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return newMetricsFilter(clientset), nil
}

func newMetricsFilter(clientset kubernetes.Interface) server.Filter {
	slots := make(chan struct{}, maxMetricsReviews)
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
			default:
				http.Error(w, "too many scrapes at once", http.StatusTooManyRequests)
				return
			}
			status := mayScrape(clientset, r, log)
			<-slots
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}
}

// mayScrape answers with the status of a refusal, or 200.
func mayScrape(clientset kubernetes.Interface, r *http.Request, log logr.Logger) int {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized
	}
	who, err := clientset.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		log.Error(err, "The token of a scrape cannot be reviewed")
		return http.StatusServiceUnavailable
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized
	}
	spec := injection.SubjectOf(&who.Status.User)
	spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: "get"}
	may, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(r.Context(),
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		log.Error(err, "The right of a scrape cannot be reviewed")
		return http.StatusServiceUnavailable
	}
	if !may.Status.Allowed {
		return http.StatusForbidden
	}
	return http.StatusOK
}
