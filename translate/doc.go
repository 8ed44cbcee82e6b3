// Package translate is the one place where the Kubernetes kinds become the
// kernel's contracts and back. It decides nothing: what it cannot translate it
// leaves out or refuses, so that the kernel sees less authority, never more.
package translate
