package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/sharedos-dev/operator/test/localcluster/internal/files"
)

var kubeconfigTemplate = template.Must(template.New("kubeconfig").Option("missingkey=error").Parse(`apiVersion: v1
kind: Config
clusters:
- name: localcluster
  cluster:
    server: {{.Server}}
    certificate-authority-data: {{.CA}}
users:
- name: {{.User}}
  user:
    client-certificate-data: {{.Cert}}
    client-key-data: {{.Key}}
contexts:
- name: localcluster
  context:
    cluster: localcluster
    user: {{.User}}
current-context: localcluster
`))

// WriteKubeconfig writes a kubeconfig for the client name, whose key and
// certificate lie in dir. The file holds the key, so only its owner reads it.
func WriteKubeconfig(file, dir, name, server string) error {
	data := map[string]string{"Server": server, "User": name}
	for field, source := range map[string]string{"CA": "ca.crt", "Cert": name + ".crt", "Key": name + ".key"} {
		content, err := os.ReadFile(filepath.Join(dir, source))
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", name, err)
		}
		data[field] = base64.StdEncoding.EncodeToString(content)
	}
	var out bytes.Buffer
	if err := kubeconfigTemplate.Execute(&out, data); err != nil {
		return fmt.Errorf("render kubeconfig of %s: %w", name, err)
	}
	return files.WriteIfChanged(file, out.Bytes(), 0o600)
}
