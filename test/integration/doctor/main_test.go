package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/plugin"
)

const root = "../../.."

// server is the API server that the tests share; TestMain sets it.
var server struct {
	client client.Client
	// Kubeconfigs of a cluster administrator, and of one who has the rights of a test.
	admin, looker string
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/doctor:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New(`KUBEBUILDER_ASSETS is not set; run make test-integration, or eval "$(go -C test/localcluster run . env --only-assets)"`)
	}
	log.SetLogger(logr.Discard())
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd")}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return 0, err
	}
	if server.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "kubeconfigs")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for path, user := range map[*string]envtest.User{
		&server.admin: {Name: "admin", Groups: []string{"system:masters"}}, &server.looker: {Name: "looker"},
	} {
		added, err := environment.AddUser(user, nil)
		if err != nil {
			return 0, err
		}
		data, err := added.KubeConfig()
		if err != nil {
			return 0, err
		}
		*path = filepath.Join(folder, user.Name)
		if err := os.WriteFile(*path, data, 0o600); err != nil {
			return 0, err
		}
	}
	if err := install(context.Background()); err != nil {
		return 0, fmt.Errorf("install: %w", err)
	}
	return m.Run(), nil
}

// finding is one line of doctor's answer.
type finding struct{ Check, State, Message, Fix string }

// examine runs doctor as a user whose clock is ahead by that much.
func examine(t *testing.T, kubeconfig string, ahead time.Duration) (found []finding, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	program := plugin.Program{
		Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Clock:   func() time.Time { return time.Now().Add(ahead) },
	}
	code = program.Run(t.Context(), []string{"doctor", "--kubeconfig", kubeconfig, "-n", "default", "-o", "json"})
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatalf("%v in %s%s", err, out.String(), errOut.String())
	}
	return found, code
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
