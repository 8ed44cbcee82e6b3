// Package crd holds the custom resource definitions, so that a program can check an
// object as the API server would without one.
package crd

import (
	"embed"
	"io/fs"
)

//go:embed sharedos.dev_*.yaml
var files embed.FS

// Files are the definitions, one a file.
func Files() fs.FS { return files }
