// Package client is the sidecar's end of the bridge protocol.
//
// A [Client] speaks HTTP/2 over one TLS connection to the kernel service. It
// looks at the file of the pod's ServiceAccount token at every request, because
// the kubelet replaces it, and keeps the execution token in memory only. It
// follows no redirect and reads no proxy from the environment, so that neither
// credential can be led elsewhere.
//
// # Repeats
//
// Attach, Catalog, Outcome and Session may be repeated without harm and are,
// until their context ends. Invoke is different: a call that may have reached
// the kernel is sent again only when its [Repeat] says so. What cannot be
// established counts as reached.
package client
