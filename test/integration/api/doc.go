// Package api tests the kinds of sharedos.dev against a real API server: what it
// accepts, what it refuses and with which message, what it keeps and what it
// shows. It needs etcd and kube-apiserver in the folder that KUBEBUILDER_ASSETS
// names.
package api
