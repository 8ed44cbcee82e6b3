// Package gitops evaluates the health of the five kinds as GitOps tools do: the Lua
// scripts of config/argocd with an interpreter that has what Argo CD gives them, the
// expressions of config/flux with Flux's own evaluator, and kstatus, which is what
// Flux uses without them. The statuses are made with the API's types, one for every
// reason that docs/reference/conditions.md knows.
package gitops
