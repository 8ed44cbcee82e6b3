// Package chart tests what `helm install` and `kubectl apply -k` would send: it
// renders charts/sharedos with the real helm, reads every object strictly, follows
// the references between them, and tries the admission policies on a real API
// server.
//
// HELM names a helm binary; without it one is built from tools/helm.
// KUBEBUILDER_ASSETS names the folder of kube-apiserver and etcd; without it the
// tests on an API server are skipped, unless SHAREDOS_FORBID_SKIP=1 forbids that.
package chart
