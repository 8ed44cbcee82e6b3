//go:build !windows

package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock opens the file and holds it against every other process until it is closed. It
// fails with [ErrLocked] if another one holds it.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(ErrLocked, f.Close())
	}
	return f, nil
}

// syncDir makes created names in the directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open audit directory: %w", err)
	}
	defer d.Close() //nolint:errcheck // read only
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync audit directory: %w", err)
	}
	return nil
}
