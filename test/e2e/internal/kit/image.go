package kit

import (
	"os"
	"path/filepath"
	"strings"
)

// HarnessImage is the example harness as the images of this checkout are named.
func (c *Cluster) HarnessImage() string {
	if image := os.Getenv("SHAREDOS_HARNESS_IMAGE"); image != "" {
		return image
	}
	tag := os.Getenv("SHAREDOS_TAG")
	if tag == "" {
		tag = c.appVersion()
	}
	return "sharedos.dev/example-harness:" + tag
}

func (c *Cluster) appVersion() string {
	raw, err := os.ReadFile(filepath.Join(c.Root, "charts", "sharedos", "Chart.yaml"))
	if err != nil {
		return "dev"
	}
	for line := range strings.Lines(string(raw)) {
		if version, ok := strings.CutPrefix(line, "appVersion:"); ok {
			return strings.Trim(strings.TrimSpace(version), `"`)
		}
	}
	return "dev"
}
