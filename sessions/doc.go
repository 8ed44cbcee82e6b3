// Package sessions holds the turns that this manager runs: each one an envelope's
// execution, bound to one pod, with the answers to calls that may be asked again.
//
// The bridge server calls a session, the Turn controller stores what it became.
// What must survive a crash is answered only after the controller said that it is
// stored ([Session.Persisted]). The package knows no Kubernetes; a session moved
// elsewhere needs its checkpoint and nothing more.
package sessions
