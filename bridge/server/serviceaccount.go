package server

import "strings"

// serviceAccountPrefix begins the user name of every ServiceAccount.
const serviceAccountPrefix = "system:serviceaccount:"

// serviceAccount splits the user name of a ServiceAccount.
func serviceAccount(username string) (namespace, name string, ok bool) {
	rest, found := strings.CutPrefix(username, serviceAccountPrefix)
	if !found {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
