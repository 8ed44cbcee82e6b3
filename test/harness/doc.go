// Package harness runs real coding agents, Claude Code and Codex from npm, against a
// bridge inside a real turn. A scripted model on loopback stands for theirs, so that
// every run makes the same calls; what the model was shown of each is compared with
// what the boundary promises.
//
// It is a module of its own. `go -C test/harness test ./...` installs the pinned
// programs into a folder below the user's cache folder; nothing reaches beyond
// loopback while they run.
package harness
