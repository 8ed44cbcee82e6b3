//go:build load

package load

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

var profiles = flag.String("profiles", "", "folder for profiles of the manager and of the API server")

// profile takes CPU profiles while a test runs; the function that it returns waits for
// them and adds the manager's heap.
func profile(t *testing.T, seconds int) (done func()) {
	t.Helper()
	if *profiles == "" {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds+60)*time.Second)
	ended := make(chan struct{})
	keep := func(name string, raw []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(*profiles, t.Name()+"."+name+".pprof"), raw, 0o600)
		}
		if err != nil {
			t.Errorf("profile of %s: %v", name, err)
		}
	}
	go func() {
		defer close(ended)
		both := make(chan struct{})
		go func() {
			defer close(both)
			raw, err := env.clientset.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(seconds)).DoRaw(ctx)
			keep("kube-apiserver", raw, err)
		}()
		raw, err := ofManager(ctx, fmt.Sprintf("profile?seconds=%d", seconds))
		keep("manager", raw, err)
		<-both
	}()
	return func() {
		defer cancel()
		<-ended
		raw, err := ofManager(ctx, "heap?gc=1")
		keep("heap", raw, err)
	}
}

// ofManager reads a profile of the first manager.
func ofManager(ctx context.Context, what string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:18061/debug/pprof/"+what, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}
