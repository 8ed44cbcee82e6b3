package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/console"
	"github.com/sharedos-dev/operator/console/consoletest"
	"github.com/sharedos-dev/operator/manager"
)

var config *rest.Config

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/console:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New(`KUBEBUILDER_ASSETS is not set; run make test-integration, or eval "$(go -C test/localcluster run . env --only-assets)"`)
	}
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("..", "..", "..", "config", "crd")}, ErrorIfCRDPathMissing: true,
	}
	if config, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("start API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	config.QPS, config.Burst = -1, -1
	return m.Run(), nil
}

// cached is a started cache over the API server, as the manager's client reads it.
func cached(t *testing.T) client.Reader {
	t.Helper()
	c, err := cache.New(config, cache.Options{Scheme: manager.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestRealObjects stores the invented world in a real API server, which checks it
// against the schemas, and opens every page over it.
func TestRealObjects(t *testing.T) {
	c, err := client.New(config, client.Options{Scheme: manager.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team-atlas", "team-borealis"} {
		create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	world := consoletest.World()
	for i := range world.Principals {
		create(t, c, &world.Principals[i])
	}
	world.Grants[3].Spec.Constraints.ExpiresAt = "" // it is long past by the real clock
	for i := range world.Grants {
		create(t, c, &world.Grants[i])
	}
	turn := &world.Turns[2]
	status := turn.Status.DeepCopy()
	create(t, c, turn)
	turn.Status = *status
	if err := c.Status().Update(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	handler, err := console.NewHandler(console.Options{Reader: cached(t), Clock: time.Now, NewID: uuid.NewString})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	for path, want := range map[string]string{
		"/":                                 "team-borealis",
		"/turns?state=Escalated":            "budget-question",
		"/turns/team-atlas/budget-question": "Waits for a decision",
		"/reach?world=team-atlas&principal=alice-assistant": `<span class="name">notes.md</span>`,
		"/refusals":    "Refusals",
		"/escalations": "kubectl sharedos approve budget-question --namespace team-atlas",
	} {
		if page := open(t, s.URL+path); !strings.Contains(page, want) {
			t.Errorf("%s does not show %q", path, want)
		}
	}
	// The kernel speaks from the Grants, through the cache: a Grant for what was asked
	// ends the waiting, as soon as the cache has it.
	grant := consoletest.Grant("team-atlas", "answer", "alice", "alice-assistant", "files", "read", false, "Work", "budget", "2026.csv")
	create(t, c, &grant)
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(open(t, s.URL+"/escalations"), "Nobody waits for a decision") {
		if time.Now().After(deadline) {
			t.Fatal("the escalation still waits")
		}
	}
	if page := open(t, s.URL+"/turns/team-atlas/budget-question"); !strings.Contains(page, "it is allowed now") {
		t.Error("the Turn's page says otherwise")
	}
}

// create stores an object as a person would: what the API server sets is left to it.
func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	o.SetUID("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	if p, ok := o.(*v1alpha1.Principal); ok && p.Spec.Authority == "" {
		p.Spec.Purposes = nil
	}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d", url, r.StatusCode)
	}
	return string(content)
}
