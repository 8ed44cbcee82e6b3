// Package wire carries resource operations from the kernel to a provider over
// HTTPS: POST [Path] with one [Operation], answered by one
// [contract.ResourceResult].
//
// Trust. The caller is authenticated by mutual TLS and is the kernel: it decided
// before it called, so the provider does not decide again and believes the
// context in the body. That context is the least a provider needs: the world
// (which tree), the owner of the resources and the actor (whom a change is
// attributed to). Nothing of authority, purpose, trace or session is sent. An
// endpoint that is not behind a verified client certificate refuses to answer.
//
// Status codes. 200 with a ResourceResult for every operation that was
// understood, whatever its outcome; otherwise {"error":{"code","message"}} with
// 400, 401, 403, 404, 405, 413, 415, 429 or 503, and nothing was executed.
//
// Delivery is at most once: [Client] never repeats an operation that may have
// reached the provider.
package wire
