// Package turns makes Turns for others: for POST /v1/turns, which waits for the end,
// and for messages to agents, whose reply is the end. Who asked is a context that the
// kernel's side has resolved; whether they may is asked of the kernel, in the name of
// the agent's own authority. The Turn itself is admitted like any other.
package turns
