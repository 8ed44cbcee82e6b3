package files

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// stripes is how many writers of different files may write at one time.
const stripes = 256

// tree is one world.
type tree struct {
	world string
	root  *os.Root
	// state holds metadata and snapshots; nil when nothing may be made.
	state *os.Root
	// indexer is nil without search; scanned is Run's.
	indexer *indexer
	scanned bool
	// mu is held shared by a writer of one file and exclusively by an operation on
	// a whole subtree. Readers need neither: files are replaced as a whole.
	mu    sync.RWMutex
	seed  maphash.Seed
	locks [stripes]sync.Mutex
}

func (t *tree) close() error {
	errs := []error{t.root.Close()}
	if t.state != nil {
		errs = append(errs, t.state.Close())
	}
	if t.indexer != nil {
		errs = append(errs, t.indexer.index.Close())
	}
	return errors.Join(errs...)
}

// changed says that the file or folder at path is not what it was.
func (t *tree) changed(path contract.Path) {
	if t.indexer != nil {
		t.indexer.mark(path)
	}
}

// writing takes the right to write the file at path; the result gives it back.
func (t *tree) writing(path contract.Path) (release func()) {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, segment := range path {
		_, _ = h.WriteString(segment)
		_ = h.WriteByte('/')
	}
	lock := &t.locks[h.Sum64()%stripes]
	t.mu.RLock()
	lock.Lock()
	return func() {
		lock.Unlock()
		t.mu.RUnlock()
	}
}

// tree returns the world's tree and opens it when it is first needed.
func (p *Provider) tree(world string) (*tree, error) {
	if !validWorld(world) || (p.opts.World != "" && world != p.opts.World) {
		return nil, fail(plane.CodeNotFound, "This provider does not serve the world.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("provider is closed")
	}
	if t := p.trees[world]; t != nil {
		return t, nil
	}
	root, err := p.openWorld(world)
	if err != nil {
		return nil, fmt.Errorf("open world: %w", err)
	}
	t := &tree{world: world, root: root, seed: maphash.MakeSeed()}
	if t.state, err = p.openState(world); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("open state of world: %w", err)
	}
	if err := p.openIndex(t); err != nil {
		_ = t.close()
		return nil, fmt.Errorf("open index of world: %w", err)
	}
	p.trees[world] = t
	select {
	case p.opened <- struct{}{}:
	default:
	}
	return t, nil
}

func (p *Provider) openWorld(world string) (*os.Root, error) {
	if p.opts.World != "" {
		return p.base.OpenRoot(".")
	}
	if !p.opts.ReadOnly {
		if err := p.base.Mkdir(world, 0o775); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return child(p.base, world)
}

// openState opens the folder of what is kept about a world's files. Without one,
// a provider that only reads does without.
func (p *Provider) openState(world string) (*os.Root, error) {
	segments := []string{reserved, world}
	if !p.opts.ReadOnly {
		return p.makeFolders(p.base, segments)
	}
	state, err := descend(p.base, segments)
	if missing(err) {
		return nil, nil
	}
	return state, err
}

// openIndex opens the world's index, which the library reaches by its own path.
func (p *Provider) openIndex(t *tree) error {
	if p.opts.OpenIndex == nil {
		return nil
	}
	dir := p.opts.IndexDir
	if dir == "" {
		dir = filepath.Join(p.opts.Root, reserved)
	}
	index, err := p.opts.OpenIndex(filepath.Join(dir, t.world, "index"))
	if err != nil {
		return err
	}
	t.indexer = newIndexer(t, index)
	return nil
}
