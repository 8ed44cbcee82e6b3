// Package files is the files plane as tools: twelve definitions with input and
// output schemas, bound to whatever resource provider serves the plane.
//
// Every tool takes "path" and is authorized on exactly that path with the action
// of its table row; the owner is the context's. The package holds no provider and
// imports none, so that a program may offer the plane without serving it.
package files
