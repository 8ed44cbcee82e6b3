// Package peers tests the MCP boundary with other people's software: the official
// Go and TypeScript SDKs as clients over real sockets and pipes, the conformance
// suite for servers, and a benchmark beside other Go servers. It tests the HTTP API
// in the same way, with a TypeScript client that a generator made from its document.
//
// It is a module of its own, so that none of this is a dependency of the product.
// `go -C test/peers test ./...` installs the npm packages it needs, pinned by
// js/package-lock.json and openapi/package-lock.json, into a folder below the user's cache folder.
package peers
