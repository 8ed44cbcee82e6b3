package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/repo"
	"github.com/sharedos-dev/operator/providers/internal/nofollow"
)

const (
	gitFolder = ".git"
	lockFile  = "index.lock"
	// objectCache bounds the objects kept in memory, bytes.
	objectCache = 16 << 20
	// largeObject is the size from which an object is streamed from disk, bytes.
	largeObject = 4 << 20
)

// opened is a repository during one operation.
type opened struct {
	op       contract.ResourceOperation
	dir      *os.Root // of the working tree
	dotGit   *os.Root
	fs       *rooted // of the working tree
	repo     *git.Repository
	worktree *git.Worktree
	locked   bool
}

func (o *opened) close() {
	if o.locked {
		_ = o.dotGit.Remove(lockFile)
	}
	if o.dotGit != nil {
		_ = o.dotGit.Close()
	}
	_ = o.dir.Close()
}

// open opens the repository at the operation's path after looking at everything
// that could lead out of it. With writes it takes the index's lock.
func (p *Provider) open(ctx context.Context, op contract.ResourceOperation, writes bool) (_ *opened, err error) {
	dir, err := p.folder(op)
	if err != nil {
		return nil, err
	}
	o := &opened{op: op, dir: dir}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	info, err := dir.Lstat(gitFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(plane.CodeNotARepository, "What is at this path is not a repository.")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, unsupported("its .git is not a folder of its own")
	}
	if o.dotGit, err = nofollow.Dir(dir, gitFolder); err != nil {
		return nil, err
	}
	if err := judge(o.dotGit); err != nil {
		return nil, err
	}
	if writes {
		if err := o.lock(); err != nil {
			return nil, err
		}
	}
	o.fs = &rooted{ctx: ctx, root: dir}
	dot := &rooted{ctx: ctx, root: o.dotGit, writable: writes, git: true}
	storage := filesystem.NewStorageWithOptions(dot, cache.NewObjectLRU(objectCache), filesystem.Options{
		LargeObjectThreshold: largeObject,
		// Refused above; should it appear meanwhile, it cannot lead out either.
		AlternatesFS: &rooted{ctx: ctx, root: o.dotGit},
	})
	if o.repo, err = git.Open(storage, o.fs); err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	if o.worktree, err = o.repo.Worktree(); err != nil {
		return nil, fmt.Errorf("open working tree: %w", err)
	}
	return o, o.judgeHead()
}

func (p *Provider) folder(op contract.ResourceOperation) (*os.Root, error) {
	world := op.Context.NamespaceID
	segments := op.Resource.Path
	if p.opts.World == "" {
		if contract.ValidateSegment(world) != nil || world[0] == '.' {
			return nil, fail(plane.CodeNotFound, "This provider does not serve the world.")
		}
		segments = append(contract.Path{world}, segments...)
	} else if world != p.opts.World {
		return nil, fail(plane.CodeNotFound, "This provider does not serve the world.")
	}
	return nofollow.Descend(p.base, segments)
}

func unsupported(why string) error {
	return fail(plane.CodeUnsupported, "The repository is not supported: %s.", why)
}

// judge refuses a repository whose parts lie elsewhere.
func judge(dotGit *os.Root) error {
	for name, why := range map[string]string{
		"commondir":                    "it is a linked working tree",
		"objects/info/alternates":      "it borrows objects from elsewhere",
		"objects/info/http-alternates": "it borrows objects from elsewhere",
	} {
		if _, err := dotGit.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return unsupported(why)
		}
	}
	for _, name := range []string{"objects", "objects/info", "objects/pack", "refs", "refs/heads", "HEAD", "config", "index", "packed-refs"} {
		if info, err := dotGit.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return unsupported("a part of it is a symbolic link")
		}
	}
	return nil
}

// judgeHead refuses a HEAD that a commit would not move as a branch.
func (o *opened) judgeHead() error {
	head, err := o.repo.Storer.Reference(plumbing.HEAD)
	if err != nil {
		return fmt.Errorf("read HEAD: %w", err)
	}
	if head.Type() == plumbing.HashReference {
		return nil
	}
	if !head.Target().IsBranch() || head.Target().Validate() != nil {
		return unsupported("its HEAD does not name a branch")
	}
	ref, err := o.repo.Storer.Reference(head.Target())
	if err == nil && ref.Type() != plumbing.HashReference {
		return unsupported("its branch is not a commit's name")
	}
	return nil
}

// lock takes the index's lock as Git does.
func (o *opened) lock() error {
	f, err := o.dotGit.OpenFile(lockFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		yes := true
		return &kernel.Failure{Err: contract.ProtocolError{
			Code: plane.CodeLocked, Message: "Another program is changing the repository.", Retryable: &yes,
		}}
	}
	if err != nil {
		return fmt.Errorf("lock index: %w", err)
	}
	o.locked = true
	return f.Close()
}

// matches reports whether a file's name lies at or below one of the paths.
func matches(name string, pathspec []contract.Path) bool {
	if pathspec == nil {
		return true
	}
	for _, path := range pathspec {
		at := strings.Join(path, "/")
		if at == "" || name == at || strings.HasPrefix(name, at+"/") {
			return true
		}
	}
	return false
}

func checkPathspec(pathspec []contract.Path, required bool) error {
	if (required && len(pathspec) == 0) || len(pathspec) > plane.MaxPathspec {
		return fail(plane.CodeInvalidInput, "pathspec must have 1 to %d paths.", plane.MaxPathspec)
	}
	for _, path := range pathspec {
		if path.Validate() != nil || hasReserved(path) {
			return fail(plane.CodeInvalidInput, "pathspec holds a path that is not valid.")
		}
	}
	return nil
}

// shown is a file's name as a path; ok is false when no path can express it.
func shown(name string) (contract.Path, bool) {
	path := contract.Path(strings.Split(name, "/"))
	return path, path.Validate() == nil
}
