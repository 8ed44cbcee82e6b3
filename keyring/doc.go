// Package keyring keeps the keys that sign execution tokens in a Secret, and
// rotates them. The leader writes; every process may read.
package keyring
