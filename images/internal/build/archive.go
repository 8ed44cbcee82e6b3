package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Save builds the spec for every platform and writes one archive each into dir:
// NAME.tar for a single platform, NAME-ARCH.tar for each of several. An archive
// that already holds the same image under the same tag is not touched, so that its
// time says when it last changed.
func (b *Builder) Save(ctx context.Context, spec Spec, dir, tag string) ([]Result, error) {
	ref, err := name.NewTag(b.Repository + "/" + spec.Name + ":" + tag)
	if err != nil {
		return nil, fmt.Errorf("name image %s: %w", spec.Name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	var results []Result
	for _, platform := range b.Platforms {
		image, err := b.Image(ctx, spec, platform)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, archiveName(spec, platform, len(b.Platforms) > 1))
		result, err := describe(image, platform)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", spec.Name, err)
		}
		result.Reference, result.Path = ref.Name(), path
		if archiveHolds(path, ref, image) {
			result.Unchanged = true
		} else if err := writeArchive(path, ref, image); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

func archiveName(spec Spec, platform Platform, several bool) string {
	if several {
		return spec.Name + "-" + platform.Arch + ".tar"
	}
	return spec.Name + ".tar"
}

// archiveHolds says whether the archive at path is this image with this tag. An
// archive that cannot be read is not, and is written again.
func archiveHolds(path string, ref name.Tag, image v1.Image) bool {
	saved, err := tarball.ImageFromPath(path, &ref)
	if err != nil {
		return false
	}
	// The configuration lists the digests of the uncompressed layers, so its
	// digest stands for the whole content.
	have, err := saved.ConfigName()
	if err != nil {
		return false
	}
	want, err := image.ConfigName()
	return err == nil && have == want
}

// writeArchive writes beside the target and renames, so that a reader never sees
// half an archive.
func writeArchive(path string, ref name.Tag, image v1.Image) error {
	temporary := path + ".new"
	if err := tarball.WriteToFile(temporary, ref, image); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("write archive %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("rename archive: %w", err)
	}
	return nil
}

func describe(image v1.Image, platform Platform) (Result, error) {
	digest, err := image.Digest()
	if err != nil {
		return Result{}, fmt.Errorf("digest image: %w", err)
	}
	bytes, err := compressedSize(image)
	if err != nil {
		return Result{}, err
	}
	return Result{Platform: platform.String(), Bytes: bytes, Digest: digest.String()}, nil
}
