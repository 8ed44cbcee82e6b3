package injection

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// AccessReviews creates SubjectAccessReviews; client-go's
// SubjectAccessReviewInterface is one.
type AccessReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// RBAC is an [Authorizer] that asks the API server.
type RBAC struct{ Reviews AccessReviews }

// MayUse implements [Authorizer].
func (a RBAC) MayUse(ctx context.Context, user authenticationv1.UserInfo, namespace, principal string) (bool, error) {
	spec := SubjectOf(&user)
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: v1alpha1.VerbUse, Group: v1alpha1.GroupVersion.Group,
		Version: v1alpha1.GroupVersion.Version, Resource: "principals", Name: principal,
	}
	review, err := a.Reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// SubjectOf is a SubjectAccessReview's subject: all that was authenticated of a user.
// What is asked about is left to the caller.
func SubjectOf(user *authenticationv1.UserInfo) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return authorizationv1.SubjectAccessReviewSpec{User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra}
}
