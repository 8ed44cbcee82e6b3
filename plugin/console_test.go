package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	gotest "testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// managerPod is a pod of the manager, ready or not, with a console or without.
func managerPod(name string, ready corev1.ConditionStatus, port int32) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: name, Labels: map[string]string{labelComponent: "manager"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}}}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	if port != 0 {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{Name: consolePort, ContainerPort: port})
	}
	return pod
}

func TestConsole(t *gotest.T) {
	ready, waiting := managerPod("m-1", corev1.ConditionTrue, 8090), managerPod("m-0", corev1.ConditionFalse, 8090)
	for name, tt := range map[string]struct {
		pods        []corev1.Pod
		args        []string
		forward     error
		code        int
		out, errOut string
		opened      string
	}{
		"ready":        {pods: []corev1.Pod{waiting, ready}, out: "http://localhost:8090/"},
		"another port": {pods: []corev1.Pod{ready}, args: []string{"--port", "9000", "--open"}, out: "http://localhost:9000/", opened: "http://localhost:9000/"},
		"not ready":    {pods: []corev1.Pod{waiting}, code: ExitError, errOut: "no pod of the manager"},
		"no console":   {pods: []corev1.Pod{managerPod("m-0", corev1.ConditionTrue, 0)}, code: ExitError, errOut: "console.enabled"},
		"no manager":   {code: ExitError, errOut: `no manager in namespace "sys"`},
		"bad port":     {args: []string{"--port", "70000"}, code: ExitError, errOut: "70000 is not a port"},
		"lost":         {pods: []corev1.Pod{ready}, forward: errors.New("lost connection"), code: ExitError, errOut: "forward a port to pod m-1: lost connection"},
	} {
		t.Run(name, func(t *gotest.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/sys/pods" || r.URL.Query().Get("labelSelector") != labelComponent+"=manager" {
					t.Errorf("it asks for %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: tt.pods}
				if err := json.NewEncoder(w).Encode(list); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var out, errOut bytes.Buffer
			opened := ""
			e := newEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
			cmd := newConsoleWith(&consoleCmd{
				env: e,
				forward: func(_ context.Context, _ *rest.Config, pod *corev1.Pod, local, remote int, listening func(int)) error {
					if pod.Name != "m-1" || remote != 8090 {
						t.Errorf("it forwards to %s:%d", pod.Name, remote)
					}
					if tt.forward == nil {
						listening(local)
					}
					return tt.forward
				},
				browse: func(_ context.Context, url string) error { opened = url; return nil },
			})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			e.addFlags(cmd)
			cmd.SetArgs(append([]string{"--server", server.URL, "--system-namespace", "sys"}, tt.args...))
			code := e.report(cmd.ExecuteContext(t.Context()), "console")
			if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.errOut) || opened != tt.opened {
				t.Errorf("exit code %d, opened %q\n%s%s", code, opened, out.String(), errOut.String())
			}
		})
	}
}
