// Package snapshot holds the objects of worlds in memory and answers questions about
// them by running the kernel: what is allowed and by which grant, which tools there
// are, what is within reach.
//
// It decides nothing itself. The objects are translated, loaded and judged by the
// code that the manager runs; only where they come from differs: from a folder of
// YAML, or from one listing of a cluster with the caller's own rights. Nothing is
// spent, invoked or written.
package snapshot
