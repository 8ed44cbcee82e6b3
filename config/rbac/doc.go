// Package rbac holds no code. It says in one place what the manager may do in every
// namespace, so that a change of its rights is a change of this file and is read as
// one; `make manifests` makes role.yaml from the markers below and from those beside
// any controller. What it may do in its own namespace only (the lease, its Secrets,
// the kernel's EndpointSlice) and to its own webhook configurations stands in the
// chart, because those rules name the release's objects.
//
// The five kinds: specs belong to people. The manager makes Turns out of messages,
// adds its finalizer to them, and narrows a Principal's tool namespaces on that
// Principal's behalf. Grants, tool namespaces and harnesses it only reads.
//
// +kubebuilder:rbac:groups=sharedos.dev,resources=principals;grants;toolnamespaces;harnesses;turns,verbs=get;list;watch
// +kubebuilder:rbac:groups=sharedos.dev,resources=principals;turns,verbs=patch;update
// +kubebuilder:rbac:groups=sharedos.dev,resources=principals/status;grants/status;toolnamespaces/status;harnesses/status;turns/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=sharedos.dev,resources=turns,verbs=create;delete
// +kubebuilder:rbac:groups=sharedos.dev,resources=turns/finalizers,verbs=update
//
// What a turn consists of: the harness pod, the network policy that confines it, and
// ConfigMaps with its events and a long output.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create;get;list;watch;patch;update;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create;get;list;watch;patch;update;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// What a tool namespace refers to. A Secret is read when a source is connected, one
// at a time: the manager never lists those of a team.
//
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
//
// Who calls: the bridge's pod-bound token, and whether an HTTP caller may use a
// Principal.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// Whether the kinds are served, asked once at the start.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get
package rbac
