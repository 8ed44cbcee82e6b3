// Package npm installs pinned npm packages for tests into the user's cache folder.
package npm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Install returns a folder whose node_modules holds exactly what the lock file in
// dir names. It is installed once per lock file and machine. Where there is no npm
// the test is skipped, and says so; under CI it fails. Call it before t.Parallel, so
// that one test installs and the others find it done.
func Install(tb testing.TB, dir string) string {
	tb.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("npm is needed: %v", err)
		}
		tb.Skipf("npm is needed: %v", err)
	}
	into, err := install(tb, dir)
	if err != nil {
		tb.Fatalf("install npm packages of %s: %v", dir, err)
	}
	return into
}

func install(tb testing.TB, dir string) (string, error) {
	tb.Helper()
	files := []string{"package.json", "package-lock.json"}
	sum := sha256.New()
	contents := make([][]byte, len(files))
	for i, name := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("read pins: %w", err)
		}
		contents[i] = data
		sum.Write(data)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	root := filepath.Join(cache, "sharedos-npm")
	final := filepath.Join(root, hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	work, err := os.MkdirTemp(root, "installing-") //nolint:usetesting // renamed into place, so on the same disk
	if err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for i, name := range files {
		if err := os.WriteFile(filepath.Join(work, name), contents[i], 0o600); err != nil {
			return "", fmt.Errorf("write pins: %w", err)
		}
	}
	tb.Logf("installing npm packages into %s", final)
	// The packages' own install scripts are not run: what they carry is enough.
	cmd := exec.CommandContext(tb.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict=false")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(work, final); err != nil && !errors.Is(err, os.ErrExist) {
		if _, there := os.Stat(final); there != nil { // another test was quicker otherwise
			return "", fmt.Errorf("keep packages: %w", err)
		}
	}
	return final, nil
}
