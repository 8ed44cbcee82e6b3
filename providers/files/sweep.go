package files

import (
	"context"
	"os"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// sweepFolder removes the temporary names in a tree that are older than before.
func sweepFolder(ctx context.Context, dir *os.Root, before time.Time, depth int) error {
	if err := ctx.Err(); err != nil || depth > contract.MaxPathSegments {
		return err
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch {
		case isTemporary(entry.Name()):
			if info, err := dir.Lstat(entry.Name()); err == nil && info.ModTime().Before(before) {
				if err := dir.RemoveAll(entry.Name()); err != nil {
					return err
				}
			}
		case entry.IsDir() && !isReserved(entry.Name()):
			if err := into(dir, entry.Name(), func(sub *os.Root) error {
				return sweepFolder(ctx, sub, before, depth+1)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
