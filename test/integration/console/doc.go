// Package console opens the web console over a real API server, through the cache
// that the manager reads.
package console
