package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/repo"
)

// maxShown bounds a text of a commit that is shown, bytes.
const maxShown = 8 << 10

// log answers repo.log.
func (p *Provider) log(ctx context.Context, o *opened) (any, error) {
	var in plane.LogInput
	if err := decode(o.op.Input, &in); err != nil {
		return nil, err
	}
	if in.MaxCount == 0 {
		in.MaxCount = plane.DefaultLogCount
	}
	if in.MaxCount < 1 || in.MaxCount > plane.MaxLogCount {
		return nil, fail(plane.CodeInvalidInput, "maxCount must be 1 to %d.", plane.MaxLogCount)
	}
	out := plane.LogOutput{Path: o.op.Resource.Path, Commits: []plane.Commit{}}
	head, err := o.repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read HEAD: %w", err)
	}
	commits, err := o.repo.Log(&git.LogOptions{From: head.Hash(), Order: git.LogOrderCommitterTime})
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	defer commits.Close()
	for {
		commit, err := commits.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(out.Commits) == in.MaxCount {
			out.Truncated = true
			return out, nil
		}
		out.Commits = append(out.Commits, describe(commit))
	}
}

func describe(c *object.Commit) plane.Commit {
	out := plane.Commit{
		ID: c.Hash.String(), Parents: []string{}, Message: valid(c.Message),
		Author: signature(&c.Author), Committer: signature(&c.Committer),
	}
	for _, parent := range c.ParentHashes {
		out.Parents = append(out.Parents, parent.String())
	}
	return out
}

func signature(s *object.Signature) plane.Signature {
	when := s.When.UTC()
	if when.Year() < 1 || when.Year() > 9999 {
		when = time.Unix(0, 0).UTC() // no such instant can be written
	}
	return plane.Signature{Name: valid(s.Name), Email: valid(s.Email), When: contract.At(when)}
}

// valid is a text of a repository as UTF-8 of a bounded length.
func valid(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
