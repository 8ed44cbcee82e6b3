package sidecar

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sidecar/harnessfiles"
)

// Modes of what is in the shared volume beside the harness's own files.
const (
	modeFile   fs.FileMode = 0o644
	modeBinary fs.FileMode = 0o755
)

// installBinary copies this program to where the wrapper is started from.
func installBinary(o *Options) error {
	if o.Binary == "" {
		return nil
	}
	source, err := os.Open(o.Binary)
	if err != nil {
		return fmt.Errorf("open own binary: %w", err)
	}
	defer source.Close() //nolint:errcheck // read only
	return harnessfiles.Place(o.in(bridge.WrapperPath), modeBinary, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	})
}
