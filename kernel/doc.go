// Package kernel decides. It loads a context's authority once per turn, answers
// whether an operation is allowed, lists the tools a context may use, and is the
// only path by which a tool, a resource plane or a message transport is reached.
//
// Everything outside is a port with a small interface: grants, uses, ancestors,
// tools, resources, messages, audit, the clock and ids. A port that fails denies.
// Resolved authority never leaves this package.
package kernel
