// Package server is the kernel's end of the bridge protocol: five routes that
// check both credentials and hand the rest to a session.
//
// The ServiceAccount token says which pod calls, the execution token for which
// turn; every request but attach needs both, and they must agree with the one pod
// that the turn is bound to. Nothing about a turn is answered before that.
package server
