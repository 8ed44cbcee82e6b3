// Package config renders the configuration files of the daemons.
package config

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/sharedos-dev/operator/test/localcluster/internal/files"
)

//go:embed templates
var templates embed.FS

// Values are everything the files depend on.
type Values struct {
	NodeName string
	NodeIP   string
	Bridge   string
	// PodCIDR and ServiceCIDR are address ranges of the cluster.
	PodCIDR, ServiceCIDR string
	// DNSIP is the ClusterIP of the name server.
	DNSIP string

	// StateDir, RunDir and PKIDir are folders of the cluster.
	StateDir, RunDir, PKIDir string
	ContainerdSocket         string
	RuncRoot                 string
	// CNIBinDir holds the network plugins, CNIConfDir their configuration.
	CNIBinDir, CNIConfDir string
	PauseImage            string
	// RestrictOOM keeps the runtime from asking for a lower out-of-memory
	// score than this process may give.
	RestrictOOM bool
	// ResolvConf is the resolver file pods inherit.
	ResolvConf string
}

// targets maps a template to the name of the rendered file.
var targets = map[string]string{
	"containerd.toml.tmpl":     "containerd.toml",
	"kubelet.yaml.tmpl":        "kubelet.yaml",
	"kube-proxy.yaml.tmpl":     "kube-proxy.yaml",
	"authentication.yaml.tmpl": "authentication.yaml",
	"cni.conflist.tmpl":        filepath.Join("cni", "10-localcluster.conflist"),
	"nftables.conf.tmpl":       "nftables.conf",
}

// Render returns one rendered template.
func Render(name string, v Values) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Write renders every file into dir.
func Write(dir string, v Values) error {
	for name, target := range targets {
		data, err := Render(name, v)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, target)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("create configuration folder: %w", err)
		}
		if err := files.WriteIfChanged(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
