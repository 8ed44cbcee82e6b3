package build

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image compiles the spec for one platform and answers its image. Nothing is
// written anywhere but the Go build cache.
func (b *Builder) Image(ctx context.Context, spec Spec, platform Platform) (v1.Image, error) {
	binary, err := b.compile(ctx, spec, platform)
	if err != nil {
		return nil, err
	}
	base, err := newLayer(baseFiles(), b.Created)
	if err != nil {
		return nil, err
	}
	program, err := newLayer([]file{{name: spec.Name, mode: 0o555, content: binary}}, b.Created)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, b.addendum(base, "files every image has"), b.addendum(program, "the binary "+spec.Name))
	if err != nil {
		return nil, fmt.Errorf("append layers of %s: %w", spec.Name, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", spec.Name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Arch
	config.Created = v1.Time{Time: b.Created}
	config.Config = v1.Config{
		User:       strconv.Itoa(userID) + ":" + strconv.Itoa(userID),
		Entrypoint: []string{"/" + spec.Name},
		WorkingDir: "/",
		Labels:     b.labels(spec),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", spec.Name, err)
	}
	return image, nil
}

func (b *Builder) addendum(layer v1.Layer, comment string) mutate.Addendum {
	return mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: b.Created}, CreatedBy: "images build", Comment: comment},
	}
}

// labels are the standard annotations of the OCI image specification.
func (b *Builder) labels(spec Spec) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       spec.Title,
		"org.opencontainers.image.description": spec.Description,
		"org.opencontainers.image.version":     b.Version,
		"org.opencontainers.image.created":     b.Created.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.vendor":      "SharedOS",
	}
}

// compressedSize is the sum of an image's compressed layers, bytes.
func compressedSize(image v1.Image) (int64, error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, fmt.Errorf("list layers: %w", err)
	}
	var sum int64
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return 0, fmt.Errorf("measure layer: %w", err)
		}
		sum += size
	}
	return sum, nil
}
