// Package identity says who calls the HTTP API on Kubernetes: a ServiceAccount token
// for the audience "sharedos" is reviewed by the API server, and the user it belongs
// to is matched to exactly one Principal of one world. Who is not matched is nobody,
// and learns nothing about what exists.
package identity
