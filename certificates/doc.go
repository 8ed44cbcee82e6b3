// Package certificates holds the installation's certificates as the running
// process uses them. The rotation library makes and renews them in two Secrets;
// this package follows the Secrets, on every replica.
package certificates
