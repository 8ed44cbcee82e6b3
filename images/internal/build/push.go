package build

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Push builds the spec for every platform and uploads it as PREFIX/NAME:TAG: a
// plain image for one platform, an index for several. Credentials come from the
// same files that the usual container tools read.
func (b *Builder) Push(ctx context.Context, spec Spec, prefix, tag string) (Result, error) {
	ref, err := name.NewTag(strings.TrimSuffix(prefix, "/") + "/" + spec.Name + ":" + tag)
	if err != nil {
		return Result{}, fmt.Errorf("name image %s: %w", spec.Name, err)
	}
	images := make([]v1.Image, 0, len(b.Platforms))
	total := Result{Reference: ref.Name(), Pushed: true}
	var names []string
	for _, platform := range b.Platforms {
		image, err := b.Image(ctx, spec, platform)
		if err != nil {
			return Result{}, err
		}
		one, err := describe(image, platform)
		if err != nil {
			return Result{}, fmt.Errorf("describe %s: %w", spec.Name, err)
		}
		total.Bytes += one.Bytes
		total.Digest = one.Digest
		names = append(names, one.Platform)
		images = append(images, image)
	}
	total.Platform = strings.Join(names, ",")

	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if len(images) == 1 {
		if err := remote.Write(ref, images[0], options...); err != nil {
			return Result{}, fmt.Errorf("push %s: %w", spec.Name, err)
		}
		return total, nil
	}
	index := b.index(images)
	digest, err := index.Digest()
	if err != nil {
		return Result{}, fmt.Errorf("digest index of %s: %w", spec.Name, err)
	}
	total.Digest = digest.String()
	if err := remote.WriteIndex(ref, index, options...); err != nil {
		return Result{}, fmt.Errorf("push %s: %w", spec.Name, err)
	}
	return total, nil
}

// index joins the images of [Builder.Platforms], in that order.
func (b *Builder) index(images []v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		platform := b.Platforms[i]
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: platform.OS, Architecture: platform.Arch}},
		})
	}
	return index
}
