package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Names in every world of the tests.
const (
	Human   = "alice"
	Agent   = "alice-assistant"
	Harness = "example"
)

// World is one namespace with a human, her agent, its Harness, and the files plane
// switched on. What the agent may do is the test's to say.
type World struct {
	Cluster   *Cluster
	Namespace string
	// Image of the harness.
	Image string
}

// NewWorld makes the namespace and what is the same in all of them.
func (c *Cluster) NewWorld(ctx context.Context, namespace, image string) (*World, error) {
	w := &World{Cluster: c, Namespace: namespace, Image: image}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
		}}},
		&corev1.ServiceAccount{ObjectMeta: w.meta(Agent)},
		&v1alpha1.Principal{ObjectMeta: w.meta(Human), Spec: v1alpha1.PrincipalSpec{
			Address: v1alpha1.NewAddress(v1alpha1.AddressHuman, Human),
		}},
		&v1alpha1.Principal{ObjectMeta: w.meta(Agent), Spec: v1alpha1.PrincipalSpec{
			Address:   v1alpha1.NewAddress(v1alpha1.AddressAgent, Agent),
			Authority: Human, Owner: Human, Purposes: []v1alpha1.Purpose{"work"},
			Identities: []v1alpha1.Identity{{ServiceAccount: &v1alpha1.ServiceAccountIdentity{
				Name: Agent, Namespace: v1alpha1.LabelName(namespace),
			}}},
		}},
		&v1alpha1.ToolNamespace{ObjectMeta: w.meta("files"), Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true,
			Source: v1alpha1.ToolSource{Provider: &v1alpha1.ProviderSource{
				Plane: v1alpha1.PlaneFiles,
				Endpoint: v1alpha1.Endpoint{Service: &v1alpha1.ServiceReference{
					Name: "sharedos-files-provider", Namespace: Namespace, Port: 8443,
				}},
			}},
		}},
		&v1alpha1.ToolNamespace{ObjectMeta: w.meta("sharedos"), Spec: v1alpha1.ToolNamespaceSpec{
			Enabled: true, Source: v1alpha1.ToolSource{Builtin: v1alpha1.BuiltinSharedOS},
		}},
		w.harness(),
	} {
		if err := c.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return w, nil
}

func (w *World) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

func (w *World) harness() *v1alpha1.Harness {
	return &v1alpha1.Harness{ObjectMeta: w.meta(Harness), Spec: v1alpha1.HarnessSpec{
		Type: v1alpha1.HarnessCustom, Output: v1alpha1.OutputJSON,
		Template: corev1.PodTemplateSpec{Spec: w.PodSpec()},
	}}
}

// PodSpec is the harness's pod as somebody would write it.
func (w *World) PodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: Agent, AutomountServiceAccountToken: new(false), RestartPolicy: corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(2)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: v1alpha1.ContainerHarness, Image: w.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"/example-harness"},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// Grant gives the agent some actions on a path and below.
func (w *World) Grant(ctx context.Context, name, plane string, path []string, actions ...string) error {
	return w.Cluster.Client.Create(ctx, w.grant(name, plane, path, actions...))
}

func (w *World) grant(name, plane string, path []string, actions ...string) *v1alpha1.Grant {
	return &v1alpha1.Grant{ObjectMeta: w.meta(name), Spec: v1alpha1.GrantSpec{
		Issuer: Human, Subject: Agent,
		Capabilities: []v1alpha1.Capability{{
			Resource: v1alpha1.CapabilityResource{Namespace: v1alpha1.Identifier(plane), Path: segments(path)},
			Actions:  actionsOf(actions), Scope: v1alpha1.ScopeDescendants,
		}},
	}}
}

// GrantRun lets the agent run turns.
func (w *World) GrantRun(ctx context.Context) error {
	return w.Grant(ctx, "run", "sharedos.execution", []string{"agent", Agent}, "invoke")
}

func segments(in []string) []v1alpha1.PathSegment {
	out := make([]v1alpha1.PathSegment, len(in))
	for i, s := range in {
		out[i] = v1alpha1.PathSegment(s)
	}
	return out
}

func actionsOf(in []string) []v1alpha1.Action {
	out := make([]v1alpha1.Action, len(in))
	for i, s := range in {
		out[i] = v1alpha1.Action(s)
	}
	return out
}

// Call is one tool call that the harness is told to make.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Read is a call of files.read.
func Read(path ...string) Call {
	return Call{Tool: "files.read", Arguments: map[string]any{"path": path}}
}

// Script is the payload that tells the example harness what to do.
type Script struct {
	Calls        []Call   `json:"calls"`
	SleepSeconds float64  `json:"sleepSeconds,omitempty"`
	PauseSeconds float64  `json:"pauseSeconds,omitempty"`
	IgnoreTerm   bool     `json:"ignoreTerm,omitempty"`
	ExitCode     int      `json:"exitCode,omitempty"`
	AllocateMiB  int      `json:"allocateMiB,omitempty"`
	OutputBytes  int      `json:"outputBytes,omitempty"`
	Probe        []string `json:"probe,omitempty"`
}

// Turn creates a Turn that runs the script. Each change may alter its spec before.
func (w *World) Turn(ctx context.Context, name string, script Script, change ...func(*v1alpha1.TurnSpec)) (*v1alpha1.Turn, error) {
	if script.Calls == nil {
		script.Calls = []Call{}
	}
	payload, err := json.Marshal(script)
	if err != nil {
		return nil, fmt.Errorf("encode the script: %w", err)
	}
	turn := &v1alpha1.Turn{ObjectMeta: w.meta(name), Spec: v1alpha1.TurnSpec{
		Principal: Agent, Harness: Harness,
		Message: v1alpha1.TurnMessage{From: Human, Payload: v1alpha1.JSONText(payload)},
	}}
	for _, c := range change {
		c(&turn.Spec)
	}
	if err := w.Cluster.Client.Create(ctx, turn); err != nil {
		return nil, fmt.Errorf("create turn %s: %w", name, err)
	}
	return turn, nil
}

// Report is what the example harness prints.
type Report struct {
	CatalogHash string        `json:"catalogHash"`
	ExecutionID string        `json:"executionId"`
	Tools       []string      `json:"tools"`
	Calls       []CallReport  `json:"calls"`
	Token       TokenReport   `json:"token"`
	Probe       []ProbeReport `json:"probe"`
}

// TokenReport is what the harness sees in its execution token.
type TokenReport struct {
	CatalogHash string `json:"catalogHash"`
	ExecutionID string `json:"executionId"`
}

// CallReport is one call as the harness saw it answered.
type CallReport struct {
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	IsError    bool            `json:"isError"`
	Status     string          `json:"status"`
	Code       string          `json:"code"`
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured"`
}

// ProbeReport is one file that the harness tried to read.
type ProbeReport struct {
	Path     string `json:"path"`
	Readable bool   `json:"readable"`
	Result   string `json:"result"`
}

// ReportOf reads the report out of a Turn's output.
func ReportOf(t *v1alpha1.Turn) (Report, error) {
	if t.Status.Output == nil {
		return Report{}, fmt.Errorf("turn %s has no output; its status is %+v", t.Name, t.Status)
	}
	return readReport(t, *t.Status.Output)
}

func readReport(t *v1alpha1.Turn, output string) (Report, error) {
	var out Report
	if err := json.Unmarshal([]byte(output), &out); err != nil {
		return out, fmt.Errorf("read the report of turn %s: %w", t.Name, err)
	}
	return out, nil
}

// Until waits until the Turn is as wanted and returns it.
func (w *World) Until(ctx context.Context, name string, timeout time.Duration, wanted func(*v1alpha1.Turn) bool) (*v1alpha1.Turn, error) {
	turn := &v1alpha1.Turn{}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		err := w.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name}, turn)
		return err == nil && wanted(turn), client.IgnoreNotFound(err)
	})
	if err != nil {
		return turn, fmt.Errorf("turn %s: %w; it is %s: %+v", name, err, turn.State(), turn.Status)
	}
	return turn, nil
}

// Finish waits for the Turn's end.
func (w *World) Finish(ctx context.Context, name string) (*v1alpha1.Turn, error) {
	return w.Until(ctx, name, 3*time.Minute, (*v1alpha1.Turn).IsFinished)
}
