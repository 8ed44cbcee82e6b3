// Command bridge-sidecar connects a harness pod to the kernel.
//
// serve is the native sidecar: it attaches to the turn and serves MCP on the pod's
// loopback address. run wraps the harness's command in the harness's own container.
// probe is the sidecar's startup probe. Flags, environment and exit codes are those
// that --help prints; they are an interface, and change only with notice.
package main

import "os"

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}
