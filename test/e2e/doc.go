// Package e2e tests the operator as it is installed: with Helm, on a real
// Kubernetes, with real pods. With CLUSTER=local (the default) that is the cluster
// of test/localcluster; with CLUSTER=current the one that kubectl talks to, into
// which the images must have been brought before.
package e2e
