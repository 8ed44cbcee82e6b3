package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// compile builds the spec's binary for one platform and answers its content. It is
// static and carries neither paths nor a build id, so that equal sources give equal
// bytes wherever they are checked out.
func (b *Builder) compile(ctx context.Context, spec Spec, platform Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "sharedos-image-")
	if err != nil {
		return nil, fmt.Errorf("make folder for %s: %w", spec.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	target := filepath.Join(dir, spec.Name)
	cmd := exec.CommandContext(ctx, "go", "build",
		"-trimpath",
		"-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+b.Version,
		"-o", target,
		spec.Package)
	cmd.Dir = filepath.Join(b.Root, spec.Module)
	cmd.Env = append(os.Environ(),
		"CGO_ENABLED=0",
		"GOOS="+platform.OS,
		"GOARCH="+platform.Arch,
		// The processor's level is part of the output: pin the lowest.
		"GOAMD64=v1",
		"GOARM64=v8.0",
		// Flags and workspaces of the person who builds must not change the result.
		"GOFLAGS=-mod=readonly",
		"GOWORK=off",
		"GOEXPERIMENT=",
	)
	cmd.Stdout = b.Log
	cmd.Stderr = b.Log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compile %s for %s: %w", spec.Name, platform, err)
	}
	binary, err := os.ReadFile(target)
	if err != nil {
		return nil, fmt.Errorf("read binary of %s: %w", spec.Name, err)
	}
	return binary, nil
}
