// Package injection turns a harness pod into one that can act: it adds the
// bridge sidecar, the token volume that only the sidecar sees, and the shared
// volume the harness reads.
//
// [Check] and [Mutate] are pure functions over a pod; [Webhook] is the admission
// handler around them. Source: spec page 08, "Injection".
package injection
