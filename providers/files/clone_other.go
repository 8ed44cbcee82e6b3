//go:build !linux

package files

import (
	"errors"
	"os"
)

func reflink(_, _ *os.File) error                   { return errors.ErrUnsupported }
func link(*os.File, string, *os.File, string) error { return errors.ErrUnsupported }
func exchange(*os.File, string, string) error       { return errors.ErrUnsupported }
