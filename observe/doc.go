// Package observe joins what watches the kernel: metrics and traces. They are told,
// and decide nothing.
package observe
