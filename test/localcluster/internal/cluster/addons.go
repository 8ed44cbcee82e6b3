package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/sharedos-dev/operator/test/localcluster/internal/host"
	"github.com/sharedos-dev/operator/test/localcluster/internal/kube"
)

//go:embed manifests
var manifests embed.FS

const (
	storageClass = "standard"
	volumeCount  = 5
	volumeSize   = "1Gi"
)

// volume is one ready-made persistent volume.
type volume struct {
	Name string
	Path string
}

func (c *Cluster) volumes() []volume {
	volumes := make([]volume, 0, volumeCount)
	for i := range volumeCount {
		name := fmt.Sprintf("local-%d", i+1)
		volumes = append(volumes, volume{Name: name, Path: filepath.Join(c.Layout.Volumes(), name)})
	}
	return volumes
}

// applyAddons applies what a cluster has besides its daemons.
func (c *Cluster) applyAddons(ctx context.Context, client *kube.Client) error {
	for _, v := range c.volumes() {
		if err := recycle(ctx, client, v); err != nil {
			return err
		}
	}
	values := map[string]any{
		"NodeName": NodeName, "DNSIP": dnsIP, "CoreDNSImage": corednsImage,
		"Upstream":     host.NameServers(),
		"StorageClass": storageClass, "VolumeSize": volumeSize, "Volumes": c.volumes(),
	}
	for _, name := range []string{"coredns.yaml.tmpl", "storage.yaml.tmpl"} {
		manifest, err := renderManifest(name, values)
		if err != nil {
			return err
		}
		if err := client.Apply(ctx, manifest); err != nil {
			return fmt.Errorf("apply %s: %w", name, err)
		}
	}
	return nil
}

func renderManifest(name string, values map[string]any) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(manifests, "manifests/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse manifest %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("render manifest %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// recycle makes the volume's folder, and empties a volume whose claim is gone:
// no provisioner does it, and a released volume is never bound again.
func recycle(ctx context.Context, client *kube.Client, v volume) error {
	path := "/api/v1/persistentvolumes/" + v.Name
	var got struct {
		Status struct{ Phase string }
	}
	err := client.Get(ctx, path, &got)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return fmt.Errorf("look at volume %s: %w", v.Name, err)
	}
	if phase := got.Status.Phase; phase == "Released" || phase == "Failed" {
		if err := client.Delete(ctx, path); err != nil && !errors.Is(err, kube.ErrNotFound) {
			return fmt.Errorf("delete released volume %s: %w", v.Name, err)
		}
		if err := os.RemoveAll(v.Path); err != nil {
			return fmt.Errorf("empty volume %s: %w", v.Name, err)
		}
	}
	if err := os.MkdirAll(v.Path, 0o755); err != nil {
		return fmt.Errorf("create folder of volume %s: %w", v.Name, err)
	}
	return nil
}
