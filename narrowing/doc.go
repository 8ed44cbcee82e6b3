// Package narrowing keeps which tool namespaces a Principal does not want, in the
// Principal's own spec. It can only narrow what Git enabled, and take back its own
// narrowing: an entry that somebody else wrote stays.
package narrowing
