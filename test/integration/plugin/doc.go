// Package plugin runs the commands of the kubectl plugin against a real API server, as
// users with different rights, and compares what they print. `go test -update` writes
// what is printed now into testdata.
package plugin
