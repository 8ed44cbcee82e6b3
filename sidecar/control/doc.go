// Package control is the conversation inside one harness pod: the wrapper and the
// startup probe on one side, the sidecar on the other, over a Unix socket in the
// shared volume.
//
// A connection carries one request and one answer, each one line of JSON. Whoever
// runs in the pod can connect; nothing that is said here gives authority, and the
// outcome a wrapper reports is the harness's own word about itself.
package control
