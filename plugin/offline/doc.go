// Package offline is the commands of `kubectl sharedos` that need no cluster: one turn
// on this machine, and tests of a folder of manifests. They are a program of their own
// as well, [Main], which is built in a fraction of the time because it has no client of
// Kubernetes; `make verify-walls` keeps it so.
package offline
