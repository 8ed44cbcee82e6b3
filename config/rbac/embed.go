package rbac

import _ "embed" // the manifests

//go:embed manager_roles.yaml
var managerRoles string

// ManagerRoles are the manager's ServiceAccount, roles and bindings, as YAML documents,
// with the names they have in a release called sharedos in namespace sharedos-system.
func ManagerRoles() string { return managerRoles }
