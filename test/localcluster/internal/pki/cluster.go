package pki

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FrontProxyUser is who the API server is to an extension server.
const FrontProxyUser = "front-proxy-client"

// Params are the names and addresses that end up in certificates.
type Params struct {
	NodeName string
	NodeIP   string
	// ServiceIP is the ClusterIP of the service "kubernetes".
	ServiceIP string
}

// Clients lists the users that get a kubeconfig, by file name.
func Clients(nodeName string) map[string]Request {
	return map[string]Request{
		"admin":                   {CommonName: "localcluster-admin", Groups: []string{"system:masters"}, Client: true},
		"kube-controller-manager": {CommonName: "system:kube-controller-manager", Client: true},
		"kube-scheduler":          {CommonName: "system:kube-scheduler", Client: true},
		"kube-proxy":              {CommonName: "system:kube-proxy", Client: true},
		"kubelet":                 {CommonName: "system:node:" + nodeName, Groups: []string{"system:nodes"}, Client: true},
	}
}

// Write makes all keys and certificates of a new cluster in dir. etcd has an
// authority of its own: a client of the cluster is no client of its store. So
// has the front proxy, whose word an extension server takes for who is calling.
func Write(dir string, p Params, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create key folder: %w", err)
	}
	files := map[string][]byte{}
	add := func(name string, pair Pair) {
		files[name+".crt"], files[name+".key"] = pair.CertPEM, pair.KeyPEM
	}
	ca, err := NewAuthority("localcluster-ca", now)
	if err != nil {
		return err
	}
	etcdCA, err := NewAuthority("localcluster-etcd-ca", now)
	if err != nil {
		return err
	}
	frontProxyCA, err := NewAuthority("localcluster-front-proxy-ca", now)
	if err != nil {
		return err
	}
	add("ca", ca.Pair)
	add("front-proxy-ca", frontProxyCA.Pair)
	add("etcd-ca", etcdCA.Pair)

	const loopback = "127.0.0.1"
	type signed struct {
		by  *Authority
		req Request
	}
	requests := map[string]signed{
		"etcd":                     {etcdCA, Request{CommonName: "etcd", Hosts: []string{loopback, "localhost"}, Client: true}},
		"etcd-client":              {etcdCA, Request{CommonName: "kube-apiserver", Client: true}},
		"front-proxy-client":       {frontProxyCA, Request{CommonName: FrontProxyUser, Client: true}},
		"apiserver":                {ca, Request{CommonName: "kube-apiserver", Hosts: apiserverHosts(p)}},
		"apiserver-kubelet-client": {ca, Request{CommonName: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}, Client: true}},
		"kubelet-server":           {ca, Request{CommonName: p.NodeName, Hosts: []string{p.NodeName, p.NodeIP}}},
	}
	for name, req := range Clients(p.NodeName) {
		requests[name] = signed{ca, req}
	}
	for name, r := range requests {
		pair, err := r.by.Issue(r.req, now)
		if err != nil {
			return err
		}
		add(name, pair)
	}
	if files["sa.key"], files["sa.pub"], err = NewSigningKey(); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func apiserverHosts(p Params) []string {
	const service = "kubernetes"
	return []string{
		p.NodeIP, p.ServiceIP, "127.0.0.1", "localhost",
		service, service + ".default", service + ".default.svc", service + ".default.svc.cluster.local",
	}
}
