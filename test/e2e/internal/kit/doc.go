// Package kit is what the end-to-end tests and the demo share: a cluster, an
// installed operator, and the words to ask both.
package kit
