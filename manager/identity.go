package manager

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// errNoUser means that the API server does not say who this process is.
var errNoUser = errors.New("the API server names no user for the manager's credentials")

// user is the name by which the API server knows this process: the only user that
// makes the pods of Harnesses.
func user(ctx context.Context, clientset kubernetes.Interface) (string, error) {
	review, err := clientset.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask who the manager is: %w", err)
	}
	if review.Status.UserInfo.Username == "" {
		return "", errNoUser
	}
	return review.Status.UserInfo.Username, nil
}
