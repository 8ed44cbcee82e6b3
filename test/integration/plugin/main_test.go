package plugin

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/plugin"
)

const (
	root  = "../../.."
	world = "team-atlas"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

// now is what the plugin takes for the present: after everything was created.
func now() time.Time { return time.Date(2029, 9, 15, 12, 0, 0, 0, time.UTC) }

// server is the API server that the tests share; TestMain sets it.
var server struct {
	client client.Client
	// Kubeconfigs of a cluster administrator, of one who may look, and of nobody.
	admin, viewer, nobody string
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration/plugin:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, errors.New(`KUBEBUILDER_ASSETS is not set; run make test-integration, or eval "$(go -C test/localcluster run . env --only-assets)"`)
	}
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
	for name, into := range map[string]*string{"admin": &server.admin, "viewer": &server.viewer, "nobody": &server.nobody} {
		user := envtest.User{Name: name}
		if name == "admin" {
			user.Groups = []string{"system:masters"}
		}
		added, err := environment.AddUser(user, nil)
		if err != nil {
			return 0, err
		}
		data, err := added.KubeConfig()
		if err != nil {
			return 0, err
		}
		*into = filepath.Join(folder, name)
		if err := os.WriteFile(*into, data, 0o600); err != nil {
			return 0, err
		}
	}
	if err := populate(context.Background()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// populate applies examples/policies and lets the viewer look at them.
func populate(ctx context.Context) error {
	set, err := manifest.Read([]string{filepath.Join(root, "examples", "policies")}, manifest.Options{Namespace: world})
	if err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: world}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: world, Name: "viewer"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: world, Name: "viewer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}},
		},
	}
	for _, object := range set.Objects {
		objects = append(objects, object)
	}
	for _, object := range objects {
		if err := server.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// printed is what one call left.
type printed struct {
	code        int
	out, errOut string
}

func (p printed) text() string {
	var b strings.Builder
	b.WriteString(p.out)
	if p.errOut != "" {
		b.WriteString("--- standard error\n" + p.errOut)
	}
	fmt.Fprintf(&b, "--- exit code %d\n", p.code)
	return b.String()
}

// call runs the plugin as the user of a kubeconfig.
func call(ctx context.Context, kubeconfig string, args ...string) printed {
	var out, errOut bytes.Buffer
	program := plugin.Program{
		Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, Clock: now,
	}
	code := program.Run(ctx, append([]string{"--kubeconfig", kubeconfig, "-n", world}, args...))
	return printed{code, out.String(), errOut.String()}
}

// golden compares with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
