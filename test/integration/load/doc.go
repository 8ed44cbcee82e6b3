// Package load measures the operator: the real manager, as a process of its own, on
// a real API server, with stand-ins for pods that speak the bridge's protocol. Its
// tests take minutes and a quiet machine, so they are built with the tag load only;
// docs/performance.md has the commands and what they measured.
package load
