// Package sidecartest has a kernel service for tests of what runs in a pod: it
// speaks the bridge protocol, checks both credentials, and answers as it is told.
// It decides nothing.
package sidecartest
