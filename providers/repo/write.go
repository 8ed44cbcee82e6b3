package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/repo"
)

// stage answers repo.stage.
//
//nolint:gocyclo // one case after the other, in the order Git has them
func (p *Provider) stage(ctx context.Context, o *opened) (any, error) {
	var in plane.StageInput
	if err := decode(o.op.Input, &in); err != nil {
		return nil, err
	}
	if err := checkPathspec(in.Pathspec, true); err != nil {
		return nil, err
	}
	changes, err := o.worktree.Status()
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		// A name that no path can express cannot be asked for.
		if _, ok := shown(name); ok && changes[name].Worktree != git.Unmodified && matches(name, in.Pathspec) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return nil, fail(plane.CodeNothingToStage, "Nothing at these paths differs from what is staged.")
	case len(names) > p.opts.MaxFiles:
		return nil, fail(plane.CodeTooLarge, "%d files differ; at most %d can be staged at once.", len(names), p.opts.MaxFiles)
	}
	out := plane.StageOutput{Path: o.op.Resource.Path, Staged: []contract.Path{}}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := o.fs.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && info.Size() > p.opts.MaxFile {
			return nil, fail(plane.CodeTooLarge, "A file has %d bytes; at most %d can be staged.", info.Size(), p.opts.MaxFile)
		}
		if err == nil && info.IsDir() {
			continue // a repository inside: nothing of it is staged
		}
		if err := o.stageFile(name, err != nil); err != nil {
			return nil, fmt.Errorf("stage file: %w", err)
		}
		if path, ok := shown(name); ok {
			out.Staged = append(out.Staged, path)
		}
	}
	return out, nil
}

func (o *opened) stageFile(name string, gone bool) error {
	if !gone {
		return o.worktree.AddWithOptions(&git.AddOptions{Path: name, SkipStatus: true})
	}
	index, err := o.repo.Storer.Index()
	if err != nil {
		return err
	}
	if _, err := index.Remove(name); err != nil {
		return err
	}
	return o.repo.Storer.SetIndex(index)
}

// commit answers repo.commit.
func (p *Provider) commit(ctx context.Context, o *opened) (any, error) {
	var in plane.CommitInput
	if err := decode(o.op.Input, &in); err != nil {
		return nil, err
	}
	message := strings.TrimSpace(in.Message)
	if n := utf8.RuneCountInString(in.Message); n > plane.MaxMessage || message == "" || strings.ContainsRune(message, 0) {
		return nil, fail(plane.CodeInvalidInput, "message must have 1 to %d characters and not be blank.", plane.MaxMessage)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	who := object.Signature{
		Name:  plain(contract.CanonicalActor(o.op.Context.Actor)),
		Email: plain(o.op.Context.Actor.ID) + "@" + string(o.op.Context.Actor.Kind) + ".invalid",
		When:  p.opts.Clock().UTC(),
	}
	// Both signatures are given, so that the library looks for no configuration.
	id, err := o.worktree.Commit(message+"\n", &git.CommitOptions{Author: &who, Committer: &who})
	if errors.Is(err, git.ErrEmptyCommit) {
		return nil, fail(plane.CodeNothingToCommit, "Nothing is staged.")
	}
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	made, err := o.repo.CommitObject(id)
	if err != nil {
		return nil, fmt.Errorf("read commit: %w", err)
	}
	return plane.CommitOutput{Path: o.op.Resource.Path, Commit: describe(made)}, nil
}

// plain leaves out what would end a name or an address in a commit.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return '_'
		}
		return r
	}, s))
}
