package chart

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func defaultAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: world}}
}

func kernelToken() *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"sharedos", "sharedos-kernel"}}}
}

// attempt is one thing somebody tries, and the policy that must refuse it; empty
// when it must succeed.
type attempt struct {
	name, user, refused string
	// message is part of the refusal: the field and the fix.
	message string
	try     func(context.Context, client.Client) error
}

func TestPolicies(t *testing.T) {
	c := startCluster(t)
	groups := map[string][]attempt{
		"grants": grantAttempts(), "turns": turnAttempts(), "status": statusAttempts(),
		"new pods": newPodAttempts(), "running pods": runningPodAttempts(), "tokens": tokenAttempts(),
	}
	for group, attempts := range groups {
		for _, a := range attempts {
			t.Run(group+"/"+a.name, func(t *testing.T) {
				err := a.try(t.Context(), c.client(t, a.user))
				switch {
				case a.refused == "" && err != nil:
					t.Errorf("refused: %v", err)
				case a.refused != "" && !refusedBy(err, "sharedos-"+a.refused):
					t.Errorf("got %v, want a refusal by sharedos-%s", err, a.refused)
				case a.refused != "" && !strings.Contains(err.Error(), a.message):
					t.Errorf("got %v, want a message with %q", err, a.message)
				}
			})
		}
	}
	t.Run("connections", func(t *testing.T) { testConnections(t, c) })
}

func grantAttempts() []attempt {
	create := func(name, issuer string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, grant(name, issuer), client.DryRunAll)
		}
	}
	edit := func(text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, grant("probe", "alice"), patch(text), client.DryRunAll)
		}
	}
	return []attempt{
		{name: "create without issue", user: editor, refused: "issue", try: create("g", "alice"),
			message: `spec.issuer: editor may not issue grants of the Principal "alice"; bind a role with the verb issue on principals/alice in namespace team-atlas`},
		{name: "create with issue", user: issuer, try: create("g", "alice")},
		{name: "create for another issuer", user: issuer, refused: "issue", try: create("g", "bob"), message: "principals/bob"},
		{name: "create as admin", user: admin, try: create("g", "bob")},
		{name: "revoke without issue", user: editor, refused: "issue", try: edit(`{"spec":{"revoked":true}}`)},
		{name: "revoke with issue", user: issuer, try: edit(`{"spec":{"revoked":true}}`)},
		{name: "label without issue", user: editor, try: edit(`{"metadata":{"labels":{"team":"x"}}}`)},
		{name: "take over", user: issuer, refused: "issue", try: edit(`{"spec":{"issuer":"bob"}}`)},
		{name: "delete", user: editor, try: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, grant("probe", "alice"), client.DryRunAll)
		}},
		{name: "dry run by server-side apply", user: editor, refused: "issue", try: func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, grant("applied", "alice"), client.Apply, client.FieldOwner("test"), client.DryRunAll) //nolint:staticcheck // the wire form is the point
		}},
	}
}

func turnAttempts() []attempt {
	create := func(principal, from string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, turn("t", principal, from), client.DryRunAll)
		}
	}
	edit := func(text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, turn("probe", "assistant", ""), patch(text), client.DryRunAll)
		}
	}
	return []attempt{
		{name: "create without use", user: editor, refused: "use", try: create("assistant", ""), message: "bind a role with the verb use on principals/assistant"},
		{name: "create with use", user: runner, try: create("assistant", "")},
		{name: "create as another", user: runner, refused: "use", try: create("alice", ""), message: "spec.principal:"},
		{name: "speak as another", user: runner, refused: "use", try: create("assistant", "alice"), message: "spec.message.from:"},
		{name: "speak as itself", user: runner, try: create("assistant", "assistant")},
		{name: "admin speaks as alice", user: admin, try: create("assistant", "alice")},
		{name: "cancel", user: editor, try: edit(`{"spec":{"cancel":true}}`)},
		{name: "add our finalizer", user: editor, refused: "turn-finalizer", try: edit(`{"metadata":{"finalizers":["sharedos.dev/turn"]}}`)},
		{name: "add another finalizer", user: editor, try: edit(`{"metadata":{"finalizers":["example.com/x"]}}`)},
		{name: "add our finalizer with debug", user: admin, try: edit(`{"metadata":{"finalizers":["sharedos.dev/turn"]}}`)},
	}
}

func statusAttempts() []attempt {
	on := func(object client.Object) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return patchStatus(ctx, c, object) }
	}
	const message = "status: only the SharedOS manager writes it"
	return []attempt{
		{name: "grant by editor", user: editor, refused: "status", try: on(grant("probe", "alice")), message: message},
		{name: "turn by editor", user: editor, refused: "status", try: on(turn("probe", "assistant", "")), message: message},
		{name: "turn by admin", user: admin, refused: "status", try: on(turn("probe", "assistant", "")), message: message},
		{name: "grant by cluster admin", user: "", refused: "status", try: on(grant("probe", "alice")), message: message},
		{name: "turn by manager", user: manager, try: on(turn("probe", "assistant", ""))},
		{name: "grant by manager", user: manager, try: on(grant("probe", "alice"))},
	}
}

func newPodAttempts() []attempt {
	create := func(change func(*corev1.Pod)) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			pod := harnessPod("new")
			change(pod)
			return c.Create(ctx, pod, client.DryRunAll)
		}
	}
	const policy = "harness-pod-create"
	return []attempt{
		{name: "injected", user: editor, try: create(func(*corev1.Pod) {})},
		{name: "without bridge", user: editor, refused: policy, try: create(func(p *corev1.Pod) { p.Spec.InitContainers = nil }), message: "the pod has no bridge"},
		{name: "without bridge by admin", user: admin, refused: policy, try: create(func(p *corev1.Pod) { p.Spec.InitContainers = nil })},
		{name: "bridge that is no sidecar", user: editor, refused: policy, try: create(func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil })},
		{name: "bridge among the containers", user: editor, refused: policy, try: create(func(p *corev1.Pod) {
			p.Spec.InitContainers = nil
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "sharedos-bridge", Image: "fake:1"})
		})},
		{name: "harness mounts the token", user: editor, refused: policy, message: "only the container sharedos-bridge may mount", try: create(func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "sharedos-kernel-token", MountPath: "/stolen"}}
		})},
		{name: "init container mounts a token of its own", user: editor, refused: policy, try: create(func(p *corev1.Pod) {
			other := *p.Spec.Volumes[0].DeepCopy()
			other.Name = "mine"
			p.Spec.Volumes = append(p.Spec.Volumes, other)
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
				Name: "thief", Image: "thief:1", VolumeMounts: []corev1.VolumeMount{{Name: "mine", MountPath: "/stolen"}},
			})
		})},
		{name: "host network", user: editor, refused: policy, try: create(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), message: "remove hostNetwork"},
		{name: "shared processes", user: editor, refused: policy, try: create(func(p *corev1.Pod) { yes := true; p.Spec.ShareProcessNamespace = &yes })},
		{name: "no label", user: editor, try: create(func(p *corev1.Pod) { p.Labels, p.Spec.InitContainers = nil, nil })},
		{name: "empty label", user: editor, refused: policy, try: create(func(p *corev1.Pod) { p.Labels["sharedos.dev/turn"], p.Spec.InitContainers = "", nil })},
	}
}

func runningPodAttempts() []attempt {
	on := func(text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, harnessPod("probe"), client.RawPatch("application/strategic-merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	ephemeral := func(ctx context.Context, c client.Client) error {
		pod := harnessPod("probe")
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug:1", TerminationMessagePolicy: corev1.TerminationMessageReadFile},
		}}
		return c.SubResource("ephemeralcontainers").Update(ctx, pod, client.DryRunAll)
	}
	const policy = "harness-pod-update"
	return []attempt{
		{name: "swap the harness image", user: editor, refused: policy, try: on(`{"spec":{"containers":[{"name":"harness","image":"other:1"}]}}`), message: "spec.containers[*].image"},
		{name: "swap the bridge image", user: editor, refused: policy, try: on(`{"spec":{"initContainers":[{"name":"sharedos-bridge","image":"other:1"}]}}`)},
		{name: "swap an image with debug", user: admin, try: on(`{"spec":{"containers":[{"name":"harness","image":"other:1"}]}}`)},
		{name: "ephemeral container", user: editor, refused: policy, try: ephemeral, message: "spec.ephemeralContainers"},
		{name: "ephemeral container with debug", user: admin, try: ephemeral},
		{name: "remove the label", user: editor, refused: policy, try: on(`{"metadata":{"labels":{"sharedos.dev/turn":null}}}`), message: "create another pod"},
		{name: "change the label", user: admin, refused: policy, try: on(`{"metadata":{"labels":{"sharedos.dev/turn":"other"}}}`)},
		{name: "claim a catalogue", user: editor, refused: policy, try: on(`{"metadata":{"annotations":{"sharedos.dev/catalog-hash":"00"}}}`), message: "metadata.annotations"},
		{name: "annotate as manager", user: manager, try: on(`{"metadata":{"annotations":{"sharedos.dev/catalog-hash":"00"}}}`)},
		{name: "other metadata", user: editor, try: on(`{"metadata":{"annotations":{"example.com/x":"y"}}}`)},
		{name: "make a plain pod a harness pod", user: editor, refused: policy, try: func(ctx context.Context, c client.Client) error {
			plain := harnessPod("plain")
			plain.Labels, plain.Spec.InitContainers = nil, nil
			if err := c.Create(ctx, plain); err != nil {
				return err
			}
			return c.Patch(ctx, plain, patch(`{"metadata":{"labels":{"sharedos.dev/turn":"plain"}}}`), client.DryRunAll)
		}},
		{name: "delete", user: editor, try: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, harnessPod("probe"), client.DryRunAll)
		}},
	}
}

func tokenAttempts() []attempt {
	request := func(token *authenticationv1.TokenRequest) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.SubResource("token").Create(ctx, defaultAccount(), token)
		}
	}
	other := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"sharedos"}}}
	return []attempt{
		{name: "kernel token by editor", user: editor, refused: "kernel-token", try: request(kernelToken()), message: "spec.audiences"},
		{name: "kernel token by admin", user: admin, refused: "kernel-token", try: request(kernelToken())},
		{name: "kernel token by cluster admin", user: "", refused: "kernel-token", try: request(kernelToken())},
		{name: "other token by editor", user: editor, try: request(other)},
		{name: "kernel token by kubelet", user: kubelet, try: request(kernelToken())},
	}
}

func testConnections(t *testing.T, c *cluster) {
	t.Helper()
	plain := harnessPod("connectable")
	plain.Labels, plain.Spec.InitContainers = nil, nil
	c.create(t, plain)
	const policy = "sharedos-harness-pod-connect"
	// A proxied connection may name a port, or a scheme and a port, beside the pod.
	for _, pod := range []string{"probe:8080", "http:probe:8080", "https:probe:"} {
		if err := c.connect(t.Context(), t, editor, pod, "proxy"); !refusedBy(err, policy) {
			t.Errorf("proxy to %s by editor = %v, want a refusal", pod, err)
		}
	}
	for _, how := range []string{"exec", "attach", "portforward", "proxy"} {
		if err := c.connect(t.Context(), t, editor, "probe", how); !refusedBy(err, policy) {
			t.Errorf("%s to a harness pod by editor = %v, want a refusal", how, err)
		}
		if err := c.connect(t.Context(), t, admin, "probe", how); refusedBy(err, policy) {
			t.Errorf("%s to a harness pod with the verb debug = %v", how, err)
		}
		if err := c.connect(t.Context(), t, editor, "connectable", how); refusedBy(err, policy) {
			t.Errorf("%s to another pod by editor = %v", how, err)
		}
	}
}
