// Package localrun runs one turn without a cluster: the manifests of a folder, the
// kernel in this process, a bridge on loopback, and the harness as a subprocess.
//
// Authority is judged as on a cluster, by the same code. What differs is around the
// harness: it runs as the user who calls, with that user's network and files, so its
// own tools are not confined. Only what goes through the bridge is.
package localrun
