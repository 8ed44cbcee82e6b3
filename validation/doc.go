// Package validation is the validating webhook for what the schema cannot see
// because it needs other objects: the ancestors of a Grant, and Principals that
// share an address. It is a convenience that refuses early; the kernel judges the
// same at every use, so nothing is allowed where the webhook is off.
package validation
