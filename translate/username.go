package translate

import (
	"strings"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// serviceAccountPrefix begins the name of every ServiceAccount's user.
const serviceAccountPrefix = "system:serviceaccount:"

// Usernames are the names by which the API server knows the identities of a Principal.
func Usernames(p *v1alpha1.Principal) []string {
	out := make([]string, 0, len(p.Spec.Identities))
	for _, identity := range p.Spec.Identities {
		if sa := identity.ServiceAccount; sa != nil {
			out = append(out, serviceAccountPrefix+string(sa.Namespace)+":"+string(sa.Name))
		} else if identity.User != "" {
			out = append(out, identity.User)
		}
	}
	return out
}

// ServiceAccountNamespace is the namespace of the ServiceAccount that a user is, if
// it is one.
func ServiceAccountNamespace(username string) (string, bool) {
	rest, ok := strings.CutPrefix(username, serviceAccountPrefix)
	if !ok {
		return "", false
	}
	namespace, name, ok := strings.Cut(rest, ":")
	return namespace, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
