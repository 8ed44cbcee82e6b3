// Package durable keeps audit events in an append-only log of JSON Lines.
//
// Each line is one record in canonical JSON:
//
//	{"event":{...},"hash":"...","prev":"...","seq":N}
//
// where hash is the hash of the record without its hash, prev is the hash of the
// record before it, and seq counts from 0 without gaps. Records are grouped into
// commits of one write and one fsync; Record returns once its commit is on disk.
// A log is split into segments named after their first record. The file HEAD names
// the last record that was acknowledged, so that a shortened log is noticed.
//
// The log detects alteration by whoever does not rewrite it from the altered
// record on; ship it, or its head, elsewhere to notice that too.
package durable
