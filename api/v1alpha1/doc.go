// Package v1alpha1 holds the five kinds of the API group sharedos.dev:
//
//   - [Principal]: who exists in a world, and which Kubernetes identity is whom.
//   - [Grant]: authority, what one principal may do on behalf of another.
//   - [ToolNamespace]: a family of tools, where it comes from, whether it is on.
//   - [Harness]: how to run an agent, a pod template.
//   - [Turn]: one bounded run of one agent.
//
// All kinds are namespaced; the Kubernetes namespace is the world. A reference
// from one object to another is a name inside the same namespace unless its
// field says otherwise.
//
// What the schema can express is refused when an object is written: structure,
// limits, unions and immutability. What needs other objects is reported in
// conditions, and whatever is not established is refused when it is used. No
// field that carries authority has a default, and the API server fills in
// nothing, so an object reads back exactly as it was applied.
//
// Lists that carry authority or order are atomic: two appliers can never
// combine their items into a list that neither of them wrote.
//
// +kubebuilder:object:generate=true
// +groupName=sharedos.dev
package v1alpha1
