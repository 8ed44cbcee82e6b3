package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// ParseResource reads a resource as people write it: its namespace, a colon, and the
// segments of its path with slashes between them. Nothing after the colon is the root
// of the plane. Example: files:Work/atlas/status.md.
func ParseResource(text string) (contract.ResourceRef, error) {
	namespace, rest, found := strings.Cut(text, ":")
	if !found {
		return contract.ResourceRef{}, fmt.Errorf("resource %q has no colon: write namespace:path, as in files:Work/plan.md", text)
	}
	ref := contract.ResourceRef{Namespace: namespace, Path: contract.Path{}}
	if rest != "" {
		ref.Path = strings.Split(rest, "/")
	}
	if err := ref.Validate(); err != nil {
		return contract.ResourceRef{}, fmt.Errorf("resource %q: %w", text, err)
	}
	return ref, nil
}

// FormatResource is the reverse of [ParseResource].
func FormatResource(namespace string, path contract.Path) string {
	return namespace + ":" + strings.Join(path, "/")
}

// FormatPlace writes a place with its scope: descendants end in /**.
func FormatPlace(namespace string, path contract.Path, scope contract.Scope) string {
	if scope != contract.ScopeDescendants {
		return FormatResource(namespace, path)
	}
	return FormatResource(namespace, append(slices.Clone(path), "**"))
}

// ParsePlace is the reverse of [FormatPlace].
func ParsePlace(text string) (contract.ResourceRef, contract.Scope, error) {
	scope := contract.ScopeExact
	if below, found := strings.CutSuffix(text, "**"); found && (strings.HasSuffix(below, "/") || strings.HasSuffix(below, ":")) {
		scope, text = contract.ScopeDescendants, strings.TrimSuffix(below, "/")
	}
	ref, err := ParseResource(text)
	return ref, scope, err
}
