//go:build load

package load

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/providers/wire"
)

// providerVariable makes this program a files provider instead of a test.
const providerVariable = "SHAREDOS_LOAD_PROVIDER"

// provider is a files provider in a process of its own, as a provider's pod is: what a
// call costs must not depend on whether its kernel shares the process.
type provider struct {
	URL string `json:"url"`
	CA  string `json:"ca"` // PEM
}

// startFiles starts a provider that always says the same.
func startFiles(t *testing.T) *provider {
	t.Helper()
	cmd := exec.Command(os.Args[0]) //nolint:noctx // ended below
	cmd.Env = append(os.Environ(), providerVariable+"=1")
	cmd.Stderr = os.Stderr
	lifeline, err := cmd.StdinPipe()
	must(t, err)
	said, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = lifeline.Close(); must(t, cmd.Wait()) })
	p := &provider{}
	must(t, json.NewDecoder(said).Decode(p))
	return p
}

// provide serves until standard input ends, which it does with the test.
func provide() error {
	s := httptest.NewTLSServer(http.HandlerFunc(list))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := json.NewEncoder(os.Stdout).Encode(provider{URL: s.URL, CA: string(ca)}); err != nil {
		return fmt.Errorf("say the address: %w", err)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func list(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	op, err := wire.ParseOperation(raw)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(contract.ResourceResult{
		OperationID: op.OperationID, Status: contract.StatusSucceeded, CompletedAt: contract.At(time.Now()),
		Output: contract.Value(`{"path":["Work"],"entries":[],"truncated":false}`),
	})
}
