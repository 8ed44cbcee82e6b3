// Package command is what the commands of `kubectl sharedos` and those of
// sharedos-local have in common: exit codes, help, completion, the version, and a
// turn's output. It knows no cluster.
package command
