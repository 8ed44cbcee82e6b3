// Package serve is the server around a resource provider's binary: mutual TLS
// from files that are reloaded when they change, a plain port for probes, and an
// orderly end.
//
// The certificate files may not exist yet, as when they come from a Secret that
// is filled later: the port is open, handshakes fail, and the log says what is
// waited for, until all three files are there and fit together. A file that breaks
// later leaves the last good set in use.
package serve
