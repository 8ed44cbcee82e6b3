package repo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	plane "github.com/sharedos-dev/operator/planes/repo"
)

// status answers repo.status.
func (p *Provider) status(_ context.Context, o *opened) (any, error) {
	if err := decode(o.op.Input, &struct{}{}); err != nil {
		return nil, err
	}
	changes, err := o.worktree.Status()
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	out := plane.StatusOutput{Path: o.op.Resource.Path, Clean: changes.IsClean(), Files: []plane.FileStatus{}}
	if head, err := o.repo.Storer.Reference(plumbing.HEAD); err == nil && head.Type() == plumbing.SymbolicReference {
		out.Branch = valid(head.Target().Short())
	}
	head, err := o.repo.Head()
	switch {
	case err == nil:
		out.Head = head.Hash().String()
	case !errors.Is(err, plumbing.ErrReferenceNotFound):
		return nil, fmt.Errorf("read HEAD: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		change := changes[name]
		if change.Staging == git.Unmodified && change.Worktree == git.Unmodified {
			continue
		}
		path, ok := shown(name)
		if !ok || len(out.Files) == p.opts.MaxFiles {
			out.Truncated = true
			continue
		}
		out.Files = append(out.Files, plane.FileStatus{Path: path, Staged: stateOf(change.Staging), Worktree: stateOf(change.Worktree)})
	}
	return out, nil
}

func stateOf(code git.StatusCode) string {
	switch code {
	case git.Unmodified:
		return plane.StateUnmodified
	case git.Untracked:
		return plane.StateUntracked
	case git.Modified:
		return plane.StateModified
	case git.Added:
		return plane.StateAdded
	case git.Deleted:
		return plane.StateDeleted
	case git.Renamed, git.Copied, git.UpdatedButUnmerged:
		return plane.StateOther
	default:
		return plane.StateOther
	}
}
