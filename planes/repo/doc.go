// Package repo is the repo plane as tools: five definitions with input and output
// schemas, bound to whatever resource provider serves the plane.
//
// "path" is the repository, and each tool is authorized on exactly that path with
// the action of its row; authority over a folder as files is no authority over it
// as a repository, nor the reverse. There is no push, reset, checkout, clean,
// configuration or remote.
package repo
