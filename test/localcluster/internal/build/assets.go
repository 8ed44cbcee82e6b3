package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// assets are the programs controller-runtime's envtest looks for.
var assets = map[string]string{"etcd": "etcd", "kube-apiserver": "kubernetes", "kubectl": "kubernetes"}

// Assets builds what envtest needs and returns the folder for
// KUBEBUILDER_ASSETS, which holds links into the cache.
func (b Builder) Assets(ctx context.Context, source string) (string, error) {
	etcd, err := Etcd(source)
	if err != nil {
		return "", err
	}
	kubernetes, err := Kubernetes(source)
	if err != nil {
		return "", err
	}
	folders := map[string]string{}
	for _, c := range []Component{etcd, kubernetes} {
		if folders[c.Name], err = b.Ensure(ctx, c); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(folders["etcd"] + "\n" + folders["kubernetes"]))
	dir := filepath.Join(b.Cache, "assets", kubernetes.Version+"-"+hex.EncodeToString(sum[:])[:12])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create assets folder: %w", err)
	}
	for name, component := range assets {
		err := os.Symlink(filepath.Join(folders[component], name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("link %s: %w", name, err)
		}
	}
	return dir, nil
}
