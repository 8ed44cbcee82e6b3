// Package rbac holds the shipped roles, and the rights of the manager in every namespace that
// belong to none of its controllers. `make manifests` makes role.yaml from the markers
// below and from those beside the controllers. What the manager may do in its own
// namespace only (the lease, its Secrets, the kernel's EndpointSlice) and to its own
// webhook configurations stands in the chart, because those rules name the release's
// objects.
//
// The kinds that a turn is admitted from, read at admission and by the webhooks.
//
// +kubebuilder:rbac:groups=sharedos.dev,resources=principals;grants;toolnamespaces;harnesses;turns,verbs=get;list;watch
//
// The kernel service asks who calls: the bridge's pod-bound token, and whether an HTTP
// caller or the creator of a pod may use a Principal.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// A Principal's own narrowing of its tool namespaces, which a caller of the HTTP API
// changes.
//
// +kubebuilder:rbac:groups=sharedos.dev,resources=principals,verbs=patch
//
// Whether the kinds are served, asked at the start.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get
package rbac
