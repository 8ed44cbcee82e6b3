package localrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/providers/files"
	"github.com/sharedos-dev/operator/providers/files/fulltext"
	"github.com/sharedos-dev/operator/providers/repo"
)

// open opens the providers of the folders that were given. The search index lies in
// scratch, so that nothing is left behind.
func (o *Options) open(ctx context.Context, scratch string) (map[v1alpha1.ResourcePlane]kernel.ResourceProvider, func() error, error) {
	planes := map[v1alpha1.ResourcePlane]kernel.ResourceProvider{}
	var closers []func() error
	closeAll := func() error {
		var errs []error
		for _, closer := range slices.Backward(closers) {
			errs = append(errs, closer())
		}
		return errors.Join(errs...)
	}
	if o.Files != "" {
		provider, err := files.Open(files.Options{
			Root: o.Files, World: o.Namespace, ReadOnly: o.ReadOnly,
			IndexDir: filepath.Join(scratch, "index"), OpenIndex: fulltext.Open,
		})
		if err != nil {
			return nil, nil, err
		}
		scanCtx, cancel := context.WithCancel(ctx)
		var scanning sync.WaitGroup
		scanning.Go(func() { provider.Run(scanCtx) })
		closers = append(closers, func() error {
			cancel()
			scanning.Wait()
			return provider.Close()
		})
		planes[v1alpha1.PlaneFiles] = provider
	}
	if o.Repo != "" {
		provider, err := repo.Open(repo.Options{Root: o.Repo, World: o.Namespace, ReadOnly: o.ReadOnly})
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		closers = append(closers, provider.Close)
		planes[v1alpha1.PlaneRepo] = provider
	}
	return planes, closeAll, nil
}

// scratch makes a folder that only this user can enter.
func scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "sharedos-")
	if err != nil {
		return "", nil, fmt.Errorf("make a private folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the system clears what is left
}
