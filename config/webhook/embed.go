// Package webhook holds the admission policies as they are shipped, so that a program can
// tell which a cluster should have.
package webhook

import _ "embed" // the manifests

//go:embed policies.yaml
var policies string

// Policies are the ValidatingAdmissionPolicies and their bindings, as YAML documents, with
// the names they have in a release called sharedos.
func Policies() string { return policies }
