// Package build turns Go packages into container images: compile, pack into
// layers, save as an archive, push to a registry. Every step is reproducible.
package build
