// Package kube talks to the API server with nothing but HTTP and YAML: the few
// calls a start needs are no reason to carry a client library.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// ErrNotFound says that the object does not exist.
var ErrNotFound = errors.New("not found")

// fieldManager owns the fields this tool applies.
const fieldManager = "localcluster"

const (
	requestTimeout = 10 * time.Second
	maxBody        = 4 << 20
)

// Client is an authenticated client of one API server.
type Client struct {
	server string
	http   *http.Client
}

// NewClient uses the keys of client name in pkiDir.
func NewClient(server, pkiDir, name string) (*Client, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(pkiDir, name+".crt"), filepath.Join(pkiDir, name+".key"))
	if err != nil {
		return nil, fmt.Errorf("load client key: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(pkiDir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("load cluster authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("load cluster authority: no certificate in ca.crt")
	}
	return &Client{server: server, http: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			// A proxy of the environment cannot reach this machine's bridge.
			Proxy:           nil,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{cert}},
		},
	}}, nil
}

// Get reads an API path into out, which may be nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, out)
}

// Delete deletes the object of an API path.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, "", nil, nil)
}

// Apply applies every object of a YAML stream, in its order.
func (c *Client) Apply(ctx context.Context, manifest []byte) error {
	for i, doc := range bytes.Split(manifest, []byte("\n---\n")) {
		var meta object
		if err := yaml.Unmarshal(doc, &meta); err != nil {
			return fmt.Errorf("read object %d of manifest: %w", i+1, err)
		}
		path, err := meta.path()
		if err != nil {
			return fmt.Errorf("object %d of manifest: %w", i+1, err)
		}
		query := url.Values{"fieldManager": {fieldManager}, "force": {"true"}}
		if err := c.do(ctx, http.MethodPatch, path+"?"+query.Encode(), "application/apply-patch+yaml", doc, nil); err != nil {
			return fmt.Errorf("apply %s %s: %w", meta.Kind, meta.Metadata.Name, err)
		}
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, message(data))
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

// message is what a Status object says, or the start of any other answer.
func message(data []byte) string {
	var status struct{ Message string }
	if json.Unmarshal(data, &status) == nil && status.Message != "" {
		return status.Message
	}
	const most = 300
	return string(data[:min(len(data), most)])
}
