package build

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Spec says what one image is made of.
type Spec struct {
	// Name is the last part of the image's repository and the binary's name in
	// the image's root folder.
	Name string
	// Module is the folder of the Go module, relative to the repository.
	Module string
	// Package is the main package, relative to the module.
	Package string
	// Title and Description become labels.
	Title, Description string
}

// Platform is an operating system and processor, as Go names them.
type Platform struct {
	OS, Arch string
}

// String answers "os/arch".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// ParsePlatform reads "linux/amd64" or "linux/arm64"; anything else is an error,
// because nothing else is tested.
func ParsePlatform(text string) (Platform, error) {
	os, arch, _ := strings.Cut(text, "/")
	platform := Platform{OS: os, Arch: arch}
	if os != "linux" || (arch != "amd64" && arch != "arm64") {
		return Platform{}, fmt.Errorf("parse platform: %q is neither linux/amd64 nor linux/arm64", text)
	}
	return platform, nil
}

// Builder makes images out of one checkout.
type Builder struct {
	// Root is the repository, an absolute path.
	Root string
	// Repository is put before every image's name when it is saved.
	Repository string
	// Platforms are built in this order; at least one.
	Platforms []Platform
	// Version is compiled into main.version and written into the labels.
	Version string
	// Created is the time every file and image claims to be from.
	Created time.Time
	// Log takes the compiler's messages.
	Log io.Writer
}

// Result is one image that exists now.
type Result struct {
	// Reference is the image's full name with its tag.
	Reference string
	// Platform is "os/arch", or several joined by commas for an index.
	Platform string
	// Bytes is the size of the compressed layers.
	Bytes int64
	// Digest is the manifest's digest, "sha256:…".
	Digest string
	// Unchanged says that the archive already held this image.
	Unchanged bool
	// Pushed says that the image is in a registry, not in an archive.
	Pushed bool
	// Path is the archive, when there is one.
	Path string
}
