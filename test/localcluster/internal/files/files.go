// Package files writes files the way daemons that read them expect.
package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// WriteIfChanged makes file hold data with the given mode. Equal content is
// left alone, because kube-proxy for one ends when its file is written again;
// other content appears at once as a whole.
func WriteIfChanged(file string, data []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		if err := os.Chmod(file, mode); err != nil {
			return fmt.Errorf("set mode of file: %w", err)
		}
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-"+filepath.Base(file)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already when all went well
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
