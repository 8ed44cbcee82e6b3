package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Namespace is where the operator is installed.
const Namespace = "sharedos-system"

// Install installs the chart, or upgrades it, and waits until all of it is ready.
func (c *Cluster) Install(ctx context.Context, out io.Writer, values map[string]any) error {
	if c.Kind == Local {
		fingerprint, err := c.fingerprint()
		if err != nil {
			return err
		}
		annotation := map[string]any{"sharedos.dev/images": fingerprint}
		for _, part := range []string{"manager", "filesProvider"} {
			of, ok := values[part].(map[string]any)
			if !ok {
				of = map[string]any{}
				values[part] = of
			}
			of["podAnnotations"] = annotation
		}
	}
	file, err := os.CreateTemp("", "values-*.yaml")
	if err != nil {
		return fmt.Errorf("make the values file: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	raw, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode the values: %w", err)
	}
	if _, err := file.Write(raw); err != nil {
		return fmt.Errorf("write the values: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write the values: %w", err)
	}
	return c.helm(ctx, out, "upgrade", "--install", "sharedos", filepath.Join(c.Root, "charts", "sharedos"),
		"--namespace", Namespace, "--create-namespace", "--values", file.Name(), "--wait", "--timeout", "5m")
}

func (c *Cluster) helm(ctx context.Context, out io.Writer, args ...string) error {
	helm := os.Getenv("HELM")
	if helm == "" {
		helm = filepath.Join(c.Root, "bin", "helm")
	}
	cmd := exec.CommandContext(ctx, helm, args...) //nolint:gosec // our own tool
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env(), out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("helm %s: %w", args[0], err)
	}
	return nil
}

// LoadImages brings the images that were built into the local cluster. Another
// cluster gets them from wherever its values say.
func (c *Cluster) LoadImages(ctx context.Context, out io.Writer) error {
	if c.Kind != Local {
		return nil
	}
	archives, err := c.archives()
	if err != nil {
		return err
	}
	return c.Load(ctx, out, archives...)
}

// archives are the image archives that were built.
func (c *Cluster) archives() ([]string, error) {
	dir := os.Getenv("SHAREDOS_IMAGES")
	if dir == "" {
		dir = filepath.Join(c.Root, "dist", "images")
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil || len(archives) == 0 {
		return nil, fmt.Errorf("no image archives in %s; run make images", dir)
	}
	return archives, nil
}

// fingerprint changes with the images, so that pods of an earlier build are
// replaced although the tag is the same.
func (c *Cluster) fingerprint() (string, error) {
	archives, err := c.archives()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, archive := range archives {
		file, err := os.Open(archive)
		if err != nil {
			return "", fmt.Errorf("read an image: %w", err)
		}
		_, err = io.Copy(sum, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", fmt.Errorf("read an image: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// Values are the chart's values for the demo and the tests: the images that were
// built here, and a few files for the world of config/samples.
func Values() map[string]any {
	tag := os.Getenv("SHAREDOS_TAG")
	images := map[string]any{"pullPolicy": "IfNotPresent"}
	if tag != "" {
		images["tag"] = tag
	}
	return map[string]any{
		"images": images,
		"filesProvider": map[string]any{"enabled": true, "seed": map[string]any{
			"team-atlas/Work/atlas/status.md":   "# Atlas\n\nOn track. Atlas ships on 2027-02-15.\n",
			"team-atlas/Work/atlas/risks.md":    "# Risks\n\n- The ship date depends on the vendor audit.\n",
			"team-atlas/Work/salaries.csv":      "name,salary\n",
			"team-borealis/Work/atlas/other.md": "# Another team's Atlas\n",
		}},
	}
}
