package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/translate"
)

// Headers that a caller may say something with. Neither is authority.
const (
	// HeaderNamespace names the world, where that is not the ServiceAccount's own
	// namespace. It takes the verb use on the Principal.
	HeaderNamespace = "X-Sharedos-Namespace"
	// HeaderPurpose chooses among the purposes of the Principal; the default is the
	// first of them.
	HeaderPurpose = "X-Sharedos-Purpose"
)

// Authorizer says whether a user has the verb use on a Principal.
type Authorizer interface {
	MayUse(ctx context.Context, user authenticationv1.UserInfo, namespace, principal string) (bool, error)
}

// Resolver is the [httpapi.ContextResolver] of a cluster. All fields are required.
// The contexts it returns have no TraceID: that is the caller's to say.
type Resolver struct {
	Tokens *Tokens
	// Reader lists the Principals and ToolNamespaces of a world; a cache will do,
	// because what they say is asked anew with every request.
	Reader client.Reader
	Access Authorizer
	Clock  func() time.Time
}

var _ httpapi.ContextResolver = (*Resolver)(nil)

// ResolveContext implements [httpapi.ContextResolver].
func (r *Resolver) ResolveContext(req *http.Request) (contract.AccessContext, error) {
	ctx := req.Context()
	user, err := r.authenticate(ctx, req.Header)
	if err != nil {
		return contract.AccessContext{}, err
	}
	who, world, err := r.principal(ctx, user, req.Header)
	if err != nil {
		return contract.AccessContext{}, err
	}
	remember(ctx, user)
	asked, err := single(req.Header, HeaderPurpose)
	if err != nil {
		return contract.AccessContext{}, err
	}
	purpose, err := who.Purpose(v1alpha1.Purpose(asked))
	if err != nil {
		return contract.AccessContext{}, &httpapi.InvalidRequestError{
			Message: strings.ToLower(HeaderPurpose) + ": not one of spec.purposes of the caller's Principal",
		}
	}
	var namespaces v1alpha1.ToolNamespaceList
	if err := r.Reader.List(ctx, &namespaces, client.InNamespace(world), client.UnsafeDisableDeepCopy); err != nil {
		return contract.AccessContext{}, fmt.Errorf("list tool namespaces: %w", err)
	}
	return who.Context(v1alpha1.Purpose(purpose), namespaces.Items, "", r.Clock())
}

func (r *Resolver) authenticate(ctx context.Context, h http.Header) (authenticationv1.UserInfo, error) {
	token, ok := bearer(h.Values("Authorization"))
	if !ok {
		return authenticationv1.UserInfo{}, fmt.Errorf("%w: no bearer token", httpapi.ErrUnauthenticated)
	}
	user, err := r.Tokens.User(ctx, token)
	if errors.Is(err, ErrRefused) {
		return user, fmt.Errorf("%w: %w", httpapi.ErrUnauthenticated, err)
	}
	return user, err
}

// principal matches the user in the world that it is in or that it names. Whatever
// is missing, the caller is told the same; the error's text is for the log.
func (r *Resolver) principal(ctx context.Context, user authenticationv1.UserInfo, h http.Header) (translate.Identity, string, error) {
	nobody := func(format string, args ...any) (translate.Identity, string, error) {
		return translate.Identity{}, "", fmt.Errorf("%w: "+format, append([]any{httpapi.ErrUnauthenticated}, args...)...)
	}
	named, err := single(h, HeaderNamespace)
	if err != nil {
		return translate.Identity{}, "", err
	}
	world, own := translate.ServiceAccountNamespace(user.Username)
	if named != "" {
		own, world = own && named == world, named
	}
	if world == "" || len(validation.IsDNS1123Label(world)) > 0 {
		return nobody("user %q names no world", user.Username)
	}
	var principals v1alpha1.PrincipalList
	if err := r.Reader.List(ctx, &principals, client.InNamespace(world), client.UnsafeDisableDeepCopy); err != nil {
		return translate.Identity{}, "", fmt.Errorf("list principals: %w", err)
	}
	who, ok := Match(user.Username, principals.Items)
	if !ok {
		return nobody("user %q is no Principal of namespace %q that can act", user.Username, world)
	}
	if own {
		return who, world, nil
	}
	allowed, err := r.Access.MayUse(ctx, user, world, who.Principal.Name)
	if err != nil {
		return translate.Identity{}, "", err
	}
	if !allowed {
		return nobody("user %q may not use principal %q of namespace %q", user.Username, who.Principal.Name, world)
	}
	return who, world, nil
}

// single is the one value of a header that may be absent.
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", &httpapi.InvalidRequestError{Message: strings.ToLower(name) + ": must be sent once"}
	}
}

// bearer takes the one bearer token out of the header's values (RFC 6750, 2.1).
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " \t")
}
