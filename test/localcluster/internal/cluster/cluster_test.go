package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/sharedos-dev/operator/test/localcluster/internal/layout"
	"github.com/sharedos-dev/operator/test/localcluster/internal/proc"
)

func newTestCluster(t *testing.T) *Cluster {
	t.Helper()
	dir := t.TempDir()
	return New(layout.Layout{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}, &bytes.Buffer{})
}

func (c *Cluster) allDaemons(p Programs) []daemon {
	return []daemon{c.etcd(p), c.containerd(p), c.apiserver(p), c.controllerManager(p), c.scheduler(p), c.kubelet(p), c.proxy(p)}
}

func TestEveryDaemonIsStopped(t *testing.T) {
	c := newTestCluster(t)
	var started []string
	for _, d := range c.allDaemons(Programs{}) {
		started = append(started, d.name)
	}
	slices.Sort(started)
	stopped := slices.Sorted(slices.Values(stopOrder))
	if !slices.Equal(started, stopped) {
		t.Errorf("started %q, but stopped %q", started, stopped)
	}
	if last := stopOrder[len(stopOrder)-1]; last != "containerd" {
		t.Errorf("%s stops last, but containers are removed through containerd", last)
	}
	if stopOrder[0] != "kubelet" {
		t.Errorf("%s stops first, so that the kubelet restarts what is removed", stopOrder[0])
	}
}

func TestNoDaemonListensBeyondThisMachine(t *testing.T) {
	c := newTestCluster(t)
	for _, d := range c.allDaemons(Programs{}) {
		for _, port := range d.ports {
			if !strings.HasPrefix(port, "127.0.0.1:") && !strings.HasPrefix(port, nodeIP+":") {
				t.Errorf("%s listens on %s", d.name, port)
			}
		}
		for _, arg := range d.args {
			if strings.Contains(arg, "0.0.0.0") || strings.Contains(arg, "=http://") && !strings.Contains(arg, "metrics") {
				t.Errorf("%s: argument %s opens it", d.name, arg)
			}
		}
	}
	if args := c.apiserver(Programs{}).args; !slices.Contains(args, "--authorization-mode=Node,RBAC") {
		t.Errorf("the API server does not authorize: %q", args)
	}
}

func TestDaemonEnv(t *testing.T) {
	environ := []string{"HTTPS_PROXY=http://p:1=x", "SECRET=s", "KUBECONFIG=/k", "no_proxy=a"}
	if got := daemonEnv("/p", false, environ); !slices.Equal(got, []string{"PATH=/p", "HOME=/"}) {
		t.Errorf("daemonEnv() = %q: the caller's environment leaks", got)
	}
	want := []string{"PATH=/p", "HOME=/", "HTTPS_PROXY=http://p:1=x", "no_proxy=a"}
	if got := daemonEnv("/p", true, environ); !slices.Equal(got, want) {
		t.Errorf("daemonEnv() with proxy = %q, want %q", got, want)
	}
}

func TestManifests(t *testing.T) {
	c := newTestCluster(t)
	values := map[string]any{
		"NodeName": NodeName, "DNSIP": dnsIP, "CoreDNSImage": corednsImage, "Upstream": []string{"10.0.0.1", "10.0.0.2"},
		"StorageClass": storageClass, "VolumeSize": volumeSize, "Volumes": c.volumes(),
	}
	kinds := map[string]int{}
	for _, name := range []string{"coredns.yaml.tmpl", "storage.yaml.tmpl"} {
		manifest, err := renderManifest(name, values)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
			var o struct {
				Kind string
				Data map[string]string
			}
			if err := yaml.UnmarshalStrict(doc, &map[string]any{}); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			if err := yaml.Unmarshal(doc, &o); err != nil {
				t.Fatal(err)
			}
			kinds[o.Kind]++
			if o.Kind == "ConfigMap" && !strings.Contains(o.Data["Corefile"], "forward . 10.0.0.1 10.0.0.2\n") {
				t.Errorf("Corefile does not forward:\n%s", o.Data["Corefile"])
			}
		}
	}
	if kinds["PersistentVolume"] != volumeCount || kinds["StorageClass"] != 1 || kinds["Deployment"] != 1 || kinds["Service"] != 1 {
		t.Errorf("manifests hold %v", kinds)
	}

	values["Upstream"] = []string(nil)
	manifest, err := renderManifest("coredns.yaml.tmpl", values)
	if err != nil || bytes.Contains(manifest, []byte("forward")) {
		t.Errorf("without name servers CoreDNS would not start: error %v\n%s", err, manifest)
	}
	delete(values, "DNSIP")
	if _, err := renderManifest("coredns.yaml.tmpl", values); err == nil {
		t.Error("renderManifest() succeeded without a value")
	}
}

// fakeAPI answers every path with one JSON text.
type fakeAPI string

func (f fakeAPI) Get(_ context.Context, _ string, out any) error {
	return json.Unmarshal([]byte(f), out)
}

func TestNodeReady(t *testing.T) {
	tests := []struct {
		name    string
		node    fakeAPI
		wantErr string
	}{
		{name: "ready", node: `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
		{name: "soft taint", node: `{"spec":{"taints":[{"key":"k","effect":"PreferNoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
		{name: "not ready", node: `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network"}]}}`, wantErr: "no network"},
		{name: "unknown", node: `{"status":{"conditions":[{"type":"Ready","status":"Unknown","message":"silent"}]}}`, wantErr: "silent"},
		{name: "tainted", node: `{"spec":{"taints":[{"key":"k/not-ready","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, wantErr: "k/not-ready"},
		{name: "says nothing", node: `{}`, wantErr: "does not say"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkError(t, nodeReady(t.Context(), tt.node), tt.wantErr) })
	}
}

func TestDNSAvailable(t *testing.T) {
	tests := []struct {
		name       string
		deployment fakeAPI
		wantErr    string
	}{
		{name: "available", deployment: `{"metadata":{"generation":2},"status":{"observedGeneration":2,"updatedReplicas":1,"availableReplicas":1}}`},
		{name: "status of an older generation", deployment: `{"metadata":{"generation":2},"status":{"observedGeneration":1,"updatedReplicas":1,"availableReplicas":1}}`, wantErr: "CoreDNS"},
		{name: "only the old pod", deployment: `{"metadata":{"generation":2},"status":{"observedGeneration":2,"availableReplicas":1}}`, wantErr: "CoreDNS"},
		{name: "nothing", deployment: `{}`, wantErr: "0 of 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkError(t, dnsAvailable(t.Context(), tt.deployment), tt.wantErr) })
	}
}

func TestPodsKnown(t *testing.T) {
	checkError(t, podsKnown(t.Context(), fakeAPI(`{"items":[{"metadata":{"namespace":"kube-system","name":"coredns-a"}}]}`)), "")
	checkError(t, podsKnown(t.Context(), fakeAPI(`{"items":[{"metadata":{"namespace":"default","name":"coredns-a"}}]}`)), "none of CoreDNS")
	checkError(t, podsKnown(t.Context(), fakeAPI(`{"items":null}`)), "0 pods")
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("error = %v, want none", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error = %v, want it to mention %q", err, want)
	}
}

func TestAwait(t *testing.T) {
	c := newTestCluster(t)
	r, err := c.procs.Start(proc.Spec{Name: "d", Exe: "/bin/sh", Args: []string{"-c", "echo why; exec sleep 60"}, LogFile: c.logFile("d")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.procs.Kill(r, 0) })

	calls := 0
	err = c.await(t.Context(), "it", time.Minute, r, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("await() = %v after %d calls, want success after 3", err, calls)
	}

	never := func(context.Context) error { return errors.New("still not") }
	err = c.await(t.Context(), "it", 120*time.Millisecond, r, never)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still not") {
		t.Errorf("await() at the limit = %v, want a deadline and the last answer", err)
	}

	for !strings.Contains(proc.Tail(c.logFile("d"), 1), "why") {
		time.Sleep(pollEvery)
	}
	if err := c.procs.Kill(r, 0); err != nil {
		t.Fatal(err)
	}
	err = c.await(t.Context(), "it", time.Minute, r, never)
	if err == nil || !strings.Contains(err.Error(), "ended") || !strings.Contains(err.Error(), "why") {
		t.Errorf("await() of a dead process = %v, want its log", err)
	}
}

func TestRemovePodLogLinks(t *testing.T) {
	c := newTestCluster(t)
	dir := t.TempDir()
	ours, others := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	if err := errors.Join(os.Symlink(c.Layout.State+"/logs/pods/a", ours), os.Symlink(c.Layout.State+"-2/logs/pods/a", others)); err != nil {
		t.Fatal(err)
	}
	if err := c.removePodLogLinks(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(ours); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("our link is still there (%v)", err)
	}
	if _, err := os.Lstat(others); err != nil {
		t.Errorf("a link of another cluster was removed: %v", err)
	}
}

func TestUsable(t *testing.T) {
	c := newTestCluster(t)
	if c.usable() {
		t.Error("an absent cluster counts as usable")
	}
	r, err := c.procs.Start(proc.Spec{Name: "containerd", Exe: "/bin/sh", Args: []string{"-c", "exec sleep 60"}, LogFile: c.logFile("containerd")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.procs.Kill(r, 0) })
	if c.usable() {
		t.Error("a cluster without complete keys counts as usable")
	}
	if err := os.WriteFile(c.marker(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !c.usable() {
		t.Error("a complete cluster of this boot does not count as usable")
	}
	r.BootID = "earlier"
	if err := c.procs.Save(r); err != nil {
		t.Fatal(err)
	}
	if c.usable() {
		t.Error("a cluster of an earlier boot counts as usable")
	}
}
