// Package httpapi serves the kernel over HTTP: one table of routes, from which
// routing, the OpenAPI document and the status codes come.
//
// It knows neither Kubernetes nor any login. Identity enters in one place, the
// [ContextResolver]; what the routes call is a replaceable [API], whose ordinary
// implementation is [NewKernelAPI]. No request body carries authority: the bodies
// are the contract's remote shapes, parsed strictly, without context, grants or
// tools.
package httpapi
