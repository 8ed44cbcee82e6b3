// Package httpapi tests the HTTP API against a real API server: who a token is, and
// what becomes of turns, messages and tool namespaces.
package httpapi
