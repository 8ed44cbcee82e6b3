// Package toolsource is the kernel's tool provider over the ToolNamespaces of a
// world: which tools there are, and the connections that serve them.
//
// It registers tools; whether one is enabled and allowed is the kernel's to say. A
// source of an enabled namespace that cannot be used fails the whole answer, so
// that no turn ever sees a partial catalogue.
package toolsource
