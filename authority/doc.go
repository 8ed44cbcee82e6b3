// Package authority is the kernel's ports to the Grants of a cluster: the grant
// source, the usage store and the delegation resolver.
//
// They read through the client they are given. Admission uses one that asks the
// API server itself, so that a Grant revoked a moment before a Turn is seen.
package authority
