package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// maxFile bounds a file, bytes.
const maxFile = 16 << 20

// Options configure [Read].
type Options struct {
	// Namespace is that of objects which name none.
	Namespace string
	// Exclude, when set, passes over the files it answers true for, by path.
	Exclude func(path string) bool
	// Material also reads Secrets and ConfigMaps, which are passed over otherwise.
	Material bool
}

// Read reads files, and every YAML and JSON file below folders. Hidden folders are
// passed over. Links to files are followed, as kubectl does, links to folders are a fault.
// Its error is [Faults] when files are at fault; the set then holds what
// could be read all the same.
func Read(paths []string, opts Options) (*Set, error) {
	schemas, err := newSchemas()
	if err != nil {
		return nil, err
	}
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	r := &reader{opts: opts, schemas: schemas, decoder: decoder, set: &Set{}, seen: map[string]Position{}}
	for _, path := range paths {
		if err := r.path(path); err != nil {
			return nil, err
		}
	}
	return r.set, r.faults.sorted().orNil()
}

type reader struct {
	opts    Options
	schemas *schemas
	decoder runtime.Decoder
	set     *Set
	seen    map[string]Position
	faults  Faults
}

func (r *reader) path(root string) error {
	// A folder that is named by a link is that folder.
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root = strings.TrimRight(root, string(filepath.Separator)) + string(filepath.Separator)
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", path, err)
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case path != root && !wanted(path, entry), r.opts.Exclude != nil && r.opts.Exclude(path):
			return nil
		}
		return r.entry(path, entry)
	})
}

// entry reads one file, or what a link leads to.
func (r *reader) entry(path string, entry fs.DirEntry) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && entry.Type()&fs.ModeSymlink == 0:
		return fmt.Errorf("read %s: %w", path, err)
	case err != nil:
		r.fail(Position{File: path}, "the link leads nowhere")
	case info.IsDir():
		r.fail(Position{File: path}, "links to folders are not followed; name the folder itself")
	case !info.Mode().IsRegular():
		r.fail(Position{File: path}, "it is no regular file")
	default:
		return r.file(path)
	}
	return nil
}

// wanted chooses files by their names, and links to folders, which must not be passed
// over in silence.
func wanted(path string, entry fs.DirEntry) bool {
	if strings.HasPrefix(entry.Name(), ".") {
		return false
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return true
		}
	}
	switch strings.ToLower(entry.Name()) {
	case "kustomization.yaml", "kustomization.yml":
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(entry.Name())))
}

func (r *reader) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxFile {
		r.fail(Position{File: path}, "the file is larger than %d bytes", maxFile)
		return nil
	}
	r.parse(path, data)
	return nil
}

func (r *reader) fail(at Position, format string, args ...any) {
	r.faults = append(r.faults, Fault{at, fmt.Sprintf(format, args...)})
}

// parse reads the documents of one file.
func (r *reader) parse(path string, data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			at, text := yamlFault(path, err)
			r.fail(at, "%s", text)
			return
		}
		r.node(path, &root)
	}
}

// yamlFault takes the line out of the parser's words.
func yamlFault(path string, err error) (Position, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if _, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	return Position{path, line}, "not YAML: " + text
}

// items takes each item of a List.
func (r *reader) items(path string, list *yaml.Node) {
	if _, items := child(list, "items"); items != nil {
		for _, item := range resolve(items).Content {
			r.node(path, item)
		}
	}
}

// node takes one document, or each item of a List.
func (r *reader) node(path string, root *yaml.Node) {
	top := resolve(root)
	if top.Kind != yaml.MappingNode {
		return // empty, or no object
	}
	_, version := child(top, "apiVersion")
	_, name := child(top, "kind")
	if version == nil || name == nil {
		return // not a Kubernetes object
	}
	if version.Value == "v1" && name.Value == "List" {
		r.items(path, top)
		return
	}
	d := &Document{Position: Position{path, top.Line}, APIVersion: version.Value, Kind: name.Value, root: root}
	material := r.opts.Material && d.APIVersion == "v1" && (d.Kind == kindSecret || d.Kind == kindConfigMap)
	if d.Group() != v1alpha1.GroupName && !material {
		return
	}
	converter := &converter{file: path}
	var err error
	if d.JSON, err = converter.append(nil, root, 0); err != nil {
		if fault, ok := errors.AsType[Fault](err); ok {
			r.faults = append(r.faults, fault)
		}
		return
	}
	if material {
		r.material(d)
		return
	}
	if d.Kind == KindAuthorizationTest {
		r.set.Tests = append(r.set.Tests, d)
		return
	}
	r.object(d)
}
