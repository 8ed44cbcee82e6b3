// Package doctor tests `kubectl sharedos doctor` against a real API server: a whole
// installation with nothing wrong, and the same with one thing broken at a time.
package doctor
