// Package sidecar is what runs beside a harness in its pod: it attaches to the
// turn, serves the turn's catalogue over MCP on the pod's loopback address, and
// closes with the turn.
//
// [Run] makes the bridge ready in this order, and goes no further when a step fails:
//
//  1. copy this binary into the shared volume, where the harness's wrapper finds it,
//     and open the control socket
//  2. attach, until the kernel has admitted the turn and knows this pod
//  3. fetch the catalogue, and refuse it unless its hash is the one of the attach
//     answer and of the execution token
//  4. listen for MCP, and write the harness's files
//  5. open the session stream; the bridge is ready with its first line
//
// The execution token is in memory, and in the connection file as the bearer of the
// loopback listener: the harness needs something to be told apart by. Anywhere else
// it is worth nothing without the pod-bound token, which only this container mounts.
//
// Source: spec pages 05 and 08, "Bridge and kernel service"; page 10, Kubernetes 1.
package sidecar
