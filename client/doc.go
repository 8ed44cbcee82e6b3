// Package client calls the HTTP API of SharedOS: one method per route, every answer
// checked against the contract, so that a server of another version is an error and
// never a half-understood object.
//
// A denied operation is an answer, not an error: read its status. Everything else
// that goes wrong is an [*Error].
package client
