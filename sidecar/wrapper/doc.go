// Package wrapper runs a harness's command inside its container: it waits for the
// bridge, starts the command, forwards signals to it, keeps the beginning of its
// standard output, and reports how it ended.
//
// It needs nothing of the image it runs in: neither a shell nor a writable file
// system, nor a user of that name.
package wrapper
