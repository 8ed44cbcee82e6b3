package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// fail is a failure that the caller may see.
func fail(code, format string, args ...any) error {
	return &kernel.Failure{
		Status: contract.StatusFailed,
		Err:    contract.ProtocolError{Code: code, Message: fmt.Sprintf(format, args...)},
	}
}

func failRetryable(code, message string) error {
	yes := true
	return &kernel.Failure{
		Status: contract.StatusFailed,
		Err:    contract.ProtocolError{Code: code, Message: message, Retryable: &yes},
	}
}

func notFound() error { return fail(plane.CodeNotFound, "There is nothing at this path.") }

func conflict() error {
	return fail(contract.CodeVersionConflict, "The file has another version than the expected one.")
}

// coded gives an error of the file system the code that a caller may see; an
// unexpected one stays as it is and is reported without detail.
func coded(err error) error {
	var failure *kernel.Failure
	switch {
	case err == nil || errors.As(err, &failure):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return notFound()
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fail(plane.CodeInvalidPath, "A segment of the path is too long for the file system.")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fail(plane.CodeNoSpace, "The volume is full.")
	case errors.Is(err, syscall.EROFS):
		return fail(plane.CodeReadOnly, "The files are read-only.")
	case errors.Is(err, syscall.ENOTDIR):
		return fail(plane.CodeNotADirectory, "A part of the path is not a folder.")
	default:
		return err
	}
}
