package localrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/objects"
)

// maxMaterial bounds a file of the folder of secrets, bytes; a Secret is not larger.
const maxMaterial = 1 << 20

// errNoMaterial says where a Secret or ConfigMap could have been.
var errNoMaterial = errors.New("it is neither among the manifests nor in the folder that --secrets names")

// material reads the Secrets and ConfigMaps that tool namespaces name: from a folder,
// if one was given and it has them, else from the manifests.
type material struct {
	read   *manifest.Set
	folder string // of folders, one for each object, with a file for each key
}

var _ objects.Reader = material{}

// Get implements [objects.Reader] for Secrets and ConfigMaps.
func (m material) Get(_ context.Context, key types.NamespacedName, into objects.Object) error {
	data, err := m.files(key.Name)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *corev1.Secret:
		if data != nil {
			into.Data = data
			return nil
		}
		for i := range m.read.Secrets {
			if s := &m.read.Secrets[i]; s.Namespace == key.Namespace && s.Name == key.Name {
				s.DeepCopyInto(into)
				return nil
			}
		}
	case *corev1.ConfigMap:
		if data != nil {
			into.Data = map[string]string{}
			for name, value := range data {
				into.Data[name] = string(value)
			}
			return nil
		}
		for i := range m.read.ConfigMaps {
			if c := &m.read.ConfigMaps[i]; c.Namespace == key.Namespace && c.Name == key.Name {
				c.DeepCopyInto(into)
				return nil
			}
		}
	}
	return errNoMaterial
}

// List implements [objects.Reader]. Nobody lists Secrets.
func (material) List(context.Context, objects.List, string) error {
	return errNoMaterial
}

// files reads an object from the folder; nil when it has none of that name.
func (m material) files(name string) (map[string][]byte, error) {
	if m.folder == "" || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, nil
	}
	root, err := os.OpenRoot(filepath.Join(m.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder of secrets: %w", err)
	}
	defer root.Close() //nolint:errcheck // read only
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("read the folder of secrets: %w", err)
	}
	data := map[string][]byte{}
	for _, entry := range entries {
		info, err := root.Stat(entry.Name())
		if err != nil || !info.Mode().IsRegular() {
			continue // a folder is no key
		}
		if info.Size() > maxMaterial {
			return nil, fmt.Errorf("read the folder of secrets: %s is larger than %d bytes", entry.Name(), maxMaterial)
		}
		if data[entry.Name()], err = root.ReadFile(entry.Name()); err != nil {
			return nil, fmt.Errorf("read the folder of secrets: %w", err)
		}
	}
	return data, nil
}
