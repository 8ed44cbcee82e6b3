package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/images/internal/build"
)

// options are the flags of build and push.
type options struct {
	out       string
	tag       string
	platforms string
	only      string
	version   string
	root      string
}

func (o *options) addFlags(set *flag.FlagSet) {
	set.StringVar(&o.out, "out", filepath.Join("dist", "images"), "folder for the archives, relative to --root")
	set.StringVar(&o.tag, "tag", "dev", "tag of every image")
	set.StringVar(&o.platforms, "platform", "linux/"+runtime.GOARCH, "platforms, separated by commas: linux/amd64, linux/arm64")
	set.StringVar(&o.only, "only", "", "names of the images to build, separated by commas (default all)")
	set.StringVar(&o.version, "version", "dev", "version compiled into the binaries and written into the labels")
	set.StringVar(&o.root, "root", "", "the repository (default: found from the working folder upwards)")
}

// selected answers the specs that --only names, in table order, or all of them.
func (o *options) selected(all []build.Spec) ([]build.Spec, error) {
	if o.only == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(o.only, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var specs []build.Spec
	for _, spec := range all {
		if wanted[spec.Name] {
			specs = append(specs, spec)
			delete(wanted, spec.Name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("select images: no image is named %q", name)
	}
	return specs, nil
}

// builder checks the flags and makes the builder they describe. Where the archives
// go is made absolute, because `go run -C images` moves the working folder.
func (o *options) builder(log io.Writer) (*build.Builder, error) {
	root := o.root
	if root == "" {
		found, err := findRoot(".")
		if err != nil {
			return nil, err
		}
		root = found
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("resolve root: %w", err)
	}
	if !filepath.IsAbs(o.out) {
		o.out = filepath.Join(root, o.out)
	}
	var platforms []build.Platform
	for text := range strings.SplitSeq(o.platforms, ",") {
		platform, err := build.ParsePlatform(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, platform)
	}
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return nil, err
	}
	return &build.Builder{
		Root:       root,
		Repository: repositoryPrefix,
		Platforms:  platforms,
		Version:    o.version,
		Created:    created,
		Log:        log,
	}, nil
}

// sourceDate reads SOURCE_DATE_EPOCH, seconds since 1970; empty is 1970 itself.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("read SOURCE_DATE_EPOCH: %q is not a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// findRoot walks up from dir to the folder whose go.mod is the operator's own.
func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find root: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module github.com/sharedos-dev/operator\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find root: no folder above is the operator's repository; use --root")
		}
		dir = parent
	}
}
