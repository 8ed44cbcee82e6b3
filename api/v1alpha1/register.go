package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "sharedos.dev"

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Principal{}, &PrincipalList{},
		&Grant{}, &GrantList{},
		&ToolNamespace{}, &ToolNamespaceList{},
		&Harness{}, &HarnessList{},
		&Turn{}, &TurnList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Resource returns the group resource of a plural name of this group, for
// errors about it. Example: Resource("grants").
func Resource(plural string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: plural}
}
