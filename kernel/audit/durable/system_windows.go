package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errSharing is what Windows answers while somebody else has the file open.
const errSharing syscall.Errno = 32

// lock opens the file for nobody else and holds it until it is closed. It fails with
// [ErrLocked] if another process holds it.
func lock(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	const alone = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, alone, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	return os.NewFile(uintptr(h), path), nil
}

// syncDir has nothing to do: a directory cannot be synced, and the file system's own
// journal keeps created names.
func syncDir(string) error { return nil }
