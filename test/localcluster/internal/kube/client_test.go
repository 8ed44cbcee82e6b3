package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newTestClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &Client{server: s.URL, http: s.Client()}
}

func TestApplySendsEveryObjectInOrder(t *testing.T) {
	var got []string
	c := newTestClient(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path)
		if ct := r.Header.Get("Content-Type"); ct != "application/apply-patch+yaml" {
			t.Errorf("Content-Type = %q", ct)
		}
		if r.URL.Query().Get("fieldManager") != fieldManager || !strings.Contains(string(body), "kind:") {
			t.Errorf("request %s with body %q", r.URL, body)
		}
	})
	const manifest = `apiVersion: v1
kind: Service
metadata: {name: a, namespace: ns}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: b}
`
	if err := c.Apply(t.Context(), []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	want := "PATCH /api/v1/namespaces/ns/services/a,PATCH /apis/storage.k8s.io/v1/storageclasses/b"
	if strings.Join(got, ",") != want {
		t.Errorf("requests = %q, want %q", got, want)
	}
}

func TestApplyRefuses(t *testing.T) {
	c := newTestClient(t, func(http.ResponseWriter, *http.Request) { t.Error("a bad manifest reached the server") })
	for name, manifest := range map[string]string{
		"unknown kind":     "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}",
		"no namespace":     "apiVersion: v1\nkind: Service\nmetadata: {name: a}",
		"namespace, wrong": "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a, namespace: ns}",
		"no name":          "apiVersion: v1\nkind: PersistentVolume\nmetadata: {}",
		"not yaml":         "\t:",
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Apply(t.Context(), []byte(manifest)); err == nil {
				t.Error("Apply() succeeded")
			}
		})
	}
}

func TestGet(t *testing.T) {
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			_, _ = io.WriteString(w, `{"value":"x"}`)
		case "/forbidden":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"because of a rule"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	var out struct{ Value string }
	if err := c.Get(t.Context(), "/ok", &out); err != nil || out.Value != "x" {
		t.Errorf("Get() = %+v, %v", out, err)
	}
	if err := c.Get(t.Context(), "/none", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get() of nothing: error = %v, want ErrNotFound", err)
	}
	if err := c.Get(t.Context(), "/forbidden", nil); err == nil || !strings.Contains(err.Error(), "because of a rule") {
		t.Errorf("Get() forbidden: error = %v, want the server's message", err)
	}
}
