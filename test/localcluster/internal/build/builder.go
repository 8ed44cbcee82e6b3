package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/test/localcluster/internal/lock"
)

// progressEvery is how often a running build says that it still runs.
const progressEvery = 20 * time.Second

// Builder builds components into a cache folder.
type Builder struct {
	// Cache is the folder that holds all built components.
	Cache string
	// Progress receives one line at a time, for a person to read.
	Progress io.Writer
}

// Ensure returns the folder that holds the component's programs and builds
// them if they are not there. Only one process builds at a time.
func (b Builder) Ensure(ctx context.Context, c Component) (string, error) {
	key, err := c.Key()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.Cache, "bin", key)
	if complete(dir, c) {
		return dir, nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("build %s: the go command is needed: %w", c.Name, err)
	}
	unlock, err := lock.Acquire(ctx, filepath.Join(b.Cache, "build.lock"), func() {
		fmt.Fprintf(b.Progress, "waiting for another build to end …\n")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir, c) { // built while we waited
		return dir, nil
	}
	return dir, b.build(ctx, c, dir)
}

// complete says whether a component's folder holds all its programs. Folders
// appear by one rename, so this only guards against hands that remove files.
func complete(dir string, c Component) bool {
	for _, name := range c.programs() {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

func (b Builder) build(ctx context.Context, c Component, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create cache folder: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
		return fmt.Errorf("create build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	start := time.Now()
	fmt.Fprintf(b.Progress, "building %s %s … (%s)\n", c.Name, c.Version, c.Hint)
	stop := b.reportProgress(c, start)
	err = run(ctx, c, tmp)
	stop()
	if err != nil {
		return fmt.Errorf("build %s %s: %w", c.Name, c.Version, err)
	}
	for _, link := range c.Links {
		if err := os.Symlink(c.Name, filepath.Join(tmp, link)); err != nil {
			return fmt.Errorf("link %s: %w", link, err)
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("open build folder to readers: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove incomplete build: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("move build into the cache: %w", err)
	}
	fmt.Fprintf(b.Progress, "built %s %s in %s\n", c.Name, c.Version, time.Since(start).Round(time.Second))
	return nil
}

// reportProgress prints a line now and then until the returned func is called.
func (b Builder) reportProgress(c Component, start time.Time) (stop func()) {
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.Progress, "building %s %s … %s (%s)\n", c.Name, c.Version, time.Since(start).Round(time.Second), c.Hint)
			}
		}
	}()
	return func() { close(done); <-finished }
}

// run calls the go command so that it leaves the programs in out.
func run(ctx context.Context, c Component, out string) error {
	args := []string{"build"}
	if c.Dir == "" {
		args = []string{"install"}
	}
	// The version-control stamp would make equal sources build differently.
	args = append(args, "-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w "+c.LDFlags))
	if c.Tags != "" {
		args = append(args, "-tags", c.Tags)
	}
	if c.Dir != "" {
		args = append(args, "-o", filepath.Join(out, c.Name), ".")
	} else {
		for _, p := range c.Packages {
			args = append(args, p+"@"+c.Version)
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = out
	}
	// A workspace file of the repository must not reach these builds, and
	// programs without C run in an empty image.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOBIN="+out)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(output.String(), 20))
	}
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
