package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var testValues = Values{
	NodeName: "node-a", NodeIP: "10.1.0.1", Bridge: "br-test", PodCIDR: "10.1.0.0/24", ServiceCIDR: "10.2.0.0/16", DNSIP: "10.2.0.10",
	StateDir: "/state", RunDir: "/run/x", PKIDir: "/state/pki", ContainerdSocket: "/run/x/c.sock", RuncRoot: "/run/x/runc",
	CNIBinDir: "/plugins", CNIConfDir: "/state/config/cni", PauseImage: "example.test/pause:1",
	RestrictOOM: true, ResolvConf: "/state/resolv.conf",
}

func TestWriteRendersEveryTemplate(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, testValues); err != nil {
		t.Fatal(err)
	}
	entries, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, ok := targets[entry.Name()]
		if !ok {
			t.Errorf("template %s is never rendered", entry.Name())
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, target))
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(data), "{{") || strings.Contains(string(data), "<no value>") {
			t.Errorf("%s is not fully rendered:\n%s", target, data)
		}
	}
}

func render(t *testing.T, name string, v Values, into any) {
	t.Helper()
	data, err := Render(name, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestKubeletIsClosedToStrangers(t *testing.T) {
	var got struct {
		Address        string
		ReadOnlyPort   *int
		FailCgroupV1   *bool
		ClusterDNS     []string
		Authentication struct{ Anonymous struct{ Enabled *bool } }
		Authorization  struct{ Mode string }
	}
	render(t, "kubelet.yaml.tmpl", testValues, &got)
	if got.Address != "10.1.0.1" || got.Authorization.Mode != "Webhook" {
		t.Errorf("address %q, authorization %q: the kubelet is open to the network", got.Address, got.Authorization.Mode)
	}
	if a := got.Authentication.Anonymous.Enabled; a == nil || *a {
		t.Error("anonymous requests are not refused")
	}
	if got.ReadOnlyPort == nil || *got.ReadOnlyPort != 0 {
		t.Error("the read-only port is open")
	}
	if got.FailCgroupV1 == nil || *got.FailCgroupV1 {
		t.Error("the kubelet does not start with cgroup v1")
	}
	if len(got.ClusterDNS) != 1 || got.ClusterDNS[0] != "10.2.0.10" {
		t.Errorf("clusterDNS = %q", got.ClusterDNS)
	}
}

func TestAnonymousMayOnlyAskForHealth(t *testing.T) {
	var got struct {
		Anonymous struct {
			Enabled    bool
			Conditions []struct{ Path string }
		}
	}
	render(t, "authentication.yaml.tmpl", testValues, &got)
	if len(got.Anonymous.Conditions) == 0 {
		t.Fatal("no conditions: anonymous requests are allowed everywhere")
	}
	for _, c := range got.Anonymous.Conditions {
		if c.Path != "/healthz" && c.Path != "/livez" && c.Path != "/readyz" {
			t.Errorf("anonymous requests are allowed for %s", c.Path)
		}
	}
}

func TestCNIIsJSON(t *testing.T) {
	data, err := Render("cni.conflist.tmpl", testValues)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Plugins []struct {
			Type      string
			Bridge    string
			IsGateway bool
			IPAM      struct{ DataDir string }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	p := got.Plugins[0]
	if p.Type != "bridge" || p.Bridge != "br-test" || !p.IsGateway || p.IPAM.DataDir != "/state/cni" {
		t.Errorf("plugin = %+v", p)
	}
}

func TestContainerd(t *testing.T) {
	for _, restrict := range []bool{true, false} {
		v := testValues
		v.RestrictOOM = restrict
		data, err := Render("containerd.toml.tmpl", v)
		if err != nil {
			t.Fatal(err)
		}
		wantOOM := map[bool]string{true: "restrict_oom_score_adj = true\n", false: "restrict_oom_score_adj = false\n"}[restrict]
		for _, want := range []string{"version = 4\n", wantOOM, "SystemdCgroup = false\n", `sandbox = "example.test/pause:1"`, `Root = "/run/x/runc"`} {
			if !strings.Contains(string(data), want) {
				t.Errorf("restrict=%v: configuration lacks %q", restrict, want)
			}
		}
	}
}
