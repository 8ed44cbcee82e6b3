// Package turns tests the controllers on a real API server: a Turn from its creation
// to its end, with the tests in the place of the kubelet and of the bridge.
package turns
