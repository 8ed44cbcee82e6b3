// Package manager puts the operator's process together: the admission webhooks on
// every replica, and on the leader the controllers, the kernel and the kernel
// service.
package manager
