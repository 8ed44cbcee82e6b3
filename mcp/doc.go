// Package mcp is the boundary between a turn and a harness that speaks the Model
// Context Protocol.
//
//	Harness configuration declares a connection.
//	The catalogue declares the tools.
//	Capabilities declare the authority.
//	The envelope is the only execution path.
//
// A [Server] turns one JSON-RPC message into at most one answer and holds no
// policy: discovery and calls go to an [Invoker]. [ServeStdio] and
// [NewHTTPServer] carry it. [OpenTurnBridge] is the invoker of a turn that runs,
// [OpenKernelBridge] the one outside a turn. Both are closed with what they were
// opened for, and answer nothing afterwards.
//
// The package needs no Kubernetes and imports only the protocol's contracts.
package mcp
