package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

const apiHost = "sharedos-kernel." + kit.Namespace + ".svc"

// curl is a session with the HTTP API of the leader.
type curl struct {
	t          *testing.T
	port       string
	ca, bearer string
}

var forwarding = regexp.MustCompile(`127\.0\.0\.1:(\d+) ->`)

// newCurl forwards a port to the leader and takes the CA and a token from where a pod
// of the world would have them.
func newCurl(t *testing.T, w *kit.World, account string) *curl {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	slice := &discoveryv1.EndpointSlice{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: kit.Namespace, Name: "sharedos-kernel-leader"}, slice))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, cluster.Kubectl, "-n", kit.Namespace, "port-forward", "pod/"+slice.Endpoints[0].TargetRef.Name, ":8444")
	cmd.Env = cluster.Env()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	c := &curl{t: t}
	for lines := bufio.NewScanner(out); c.port == "" && lines.Scan(); {
		if m := forwarding.FindStringSubmatch(lines.Text()); m != nil {
			c.port = m[1]
		}
	}
	if c.port == "" {
		t.Fatal("kubectl port-forward named no port")
	}
	bundle := &corev1.ConfigMap{}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: v1alpha1.ConfigMapCA}, bundle)
		return err == nil, client.IgnoreNotFound(err)
	})
	must(t, err)
	c.ca = filepath.Join(t.TempDir(), v1alpha1.KeyCA)
	must(t, os.WriteFile(c.ca, []byte(bundle.Data[v1alpha1.KeyCA]), 0o600))
	token, err := cluster.Run(t.Context(), "-n", w.Namespace, "create", "token", account, "--audience", v1alpha1.AudienceAPI)
	must(t, err)
	c.bearer = filepath.Join(t.TempDir(), "headers")
	must(t, os.WriteFile(c.bearer, []byte("authorization: Bearer "+strings.TrimSpace(token)+"\n"), 0o600))
	return c
}

// do runs curl and returns the status, the HTTP version and the body. A body of its
// own makes a POST.
func (c *curl) do(path, body string, args ...string) (status, version, answer string) {
	c.t.Helper()
	all := []string{
		"--silent", "--show-error", "--max-time", "180", "--cacert", c.ca, "--resolve", apiHost + ":" + c.port + ":127.0.0.1",
		"--write-out", "\n%{http_code} %{http_version}",
	}
	if body != "" {
		all = append(all, "--header", "content-type: application/json", "--data-binary", body)
	}
	all = append(append(all, args...), "https://"+apiHost+":"+c.port+path)
	var stderr strings.Builder
	cmd := exec.CommandContext(c.t.Context(), "curl", all...)
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("curl %s: %v: %s", path, err, stderr.String())
	}
	end := strings.LastIndexByte(string(raw), '\n')
	answer = string(raw[:end])
	_, err = fmt.Sscanf(string(raw[end+1:]), "%s %s", &status, &version)
	must(c.t, err)
	return status, version, answer
}

// as is do with the token.
func (c *curl) as(path, body string, args ...string) (status, answer string) {
	c.t.Helper()
	status, _, answer = c.do(path, body, append(args, "--header", "@"+c.bearer)...)
	return status, answer
}

func (c *curl) want(what, status, answer, wantStatus string, wantParts ...string) {
	c.t.Helper()
	if status != wantStatus {
		c.t.Errorf("%s: status %s, want %s: %s", what, status, wantStatus, answer)
	}
	for _, part := range wantParts {
		if !strings.Contains(answer, part) {
			c.t.Errorf("%s: %s, want it to have %s", what, answer, part)
		}
	}
}

// TestTheCurlSession is the session of the HTTP API's reference, with the token of a
// ServiceAccount, and every other route after it.
func TestTheCurlSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "http")
	agent := &v1alpha1.Principal{}
	must(t, cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: kit.Agent}, agent))
	before := agent.DeepCopy()
	agent.Spec.Harness = kit.Harness
	must(t, cluster.Client.Patch(t.Context(), agent, client.MergeFrom(before)))
	must(t, w.GrantRun(t.Context()))
	must(t, w.Grant(t.Context(), "read", "files", []string{"Work", "atlas"}, "read"))
	must(t, w.Grant(t.Context(), "send", "sharedos.messaging", []string{"agent", kit.Agent}, "send"))
	c := newCurl(t, w, kit.Agent)

	status, version, answer := c.do("/health", "")
	c.want("health", status, answer, "200", `{"status":"ok","protocolVersion":"1"}`)
	if version != "2" {
		t.Errorf("HTTP/%s, want 2", version)
	}
	status, _, answer = c.do("/v1/tools", "")
	c.want("without a token", status, answer, "401", `"code":"unauthenticated"`)
	status, _, answer = c.do("/v1/tools", "", "--header", "authorization: Bearer nonsense")
	c.want("with nonsense", status, answer, "401", `"code":"unauthenticated"`)

	status, answer = c.as("/v1/tools", "")
	c.want("tools", status, answer, "200", `"name":"files.read"`)
	if strings.Contains(answer, "files.list") {
		t.Errorf("a tool without a grant is offered: %s", answer)
	}
	const requirement = `{"resource":{"namespace":"files","path":["Work","atlas","status.md"]},"action":%q}`
	status, answer = c.as("/v1/authorize", fmt.Sprintf(requirement, "read"))
	c.want("authorize", status, answer, "200", `{"allowed":true,"reasonCode":"allowed","matchedGrantId":"read"}`)
	status, answer = c.as("/v1/authorize", fmt.Sprintf(requirement, "delete"))
	c.want("authorize what is not allowed", status, answer, "200", `"allowed":false`, `"no_matching_grant"`)
	const call = `{"id":"call-1","tool":"files.read","traceId":"trace-1","requestedAt":"2026-08-24T09:00:00.000Z","arguments":{"path":["Work",%q,%q]}}`
	status, answer = c.as("/v1/tools/invoke", fmt.Sprintf(call, "atlas", "status.md"))
	c.want("invoke", status, answer, "200", `"status":"succeeded"`, "2027-02-15")
	status, answer = c.as("/v1/tools/invoke", fmt.Sprintf(call, "hr", "salaries.md"))
	c.want("invoke outside", status, answer, "200", `"status":"denied"`, `"no_matching_grant"`)

	status, answer = c.as("/v1/reach", "")
	c.want("reach", status, answer, "200", `{"namespace":"files","path":["Work","atlas"],"actions":["read"],"scope":"descendants"}`)
	status, answer = c.as("/v1/resources/invoke", `{"operationId":"op-1","resource":{"namespace":"files","path":["Work","atlas","status.md"]},"action":"read"}`)
	c.want("resources", status, answer, "200", `"status":"succeeded"`, "2027-02-15")
	status, answer = c.as("/v1/tools/namespaces", `{"disable":["files"]}`, "--request", "PUT")
	c.want("narrowing", status, answer, "200", `"namespace":"files","sources":["sharedos"],"toolCount":12,"enabled":false`)
	status, answer = c.as("/v1/tools", "")
	c.want("tools when off", status, answer, "200", `[]`)
	status, answer = c.as("/v1/tools/namespaces", `{"enable":["files"]}`, "--request", "PUT")
	c.want("restoring", status, answer, "200", `"namespace":"files","sources":["sharedos"],"toolCount":12,"enabled":true`)
	status, answer = c.as("/v1/tools/namespaces", "")
	c.want("namespaces", status, answer, "200", `"summary":{`)
	status, answer = c.as("/v1/tools", "", "--header", "x-sharedos-purpose: another")
	c.want("an unlisted purpose", status, answer, "400", `"invalid_request"`)
	status, answer = c.as("/v1/authorize", `{"resource":{"namespace":"files","path":[]},"action":"read","grants":[]}`)
	c.want("smuggled grants", status, answer, "400", `"invalid_request"`)
	status, answer = c.as("/v1/nothing", "")
	c.want("no such path", status, answer, "404", `"not_found"`)

	script, err := json.Marshal(kit.Script{Calls: []kit.Call{kit.Read("Work", "atlas", "status.md"), kit.Read("Work", "hr", "salaries.md")}})
	must(t, err)
	message := func(id string) string {
		return fmt.Sprintf(`{"version":"1","id":%q,"sender":{"kind":"agent","agentId":%q},"receiver":{"kind":"agent","agentId":%[2]q},`+
			`"purpose":"work","payload":%s,"traceId":"trace-2","createdAt":"2026-08-24T09:00:00.000Z"}`, id, kit.Agent, script)
	}
	turn := fmt.Sprintf(`{"version":"1","executionId":"execution-1","agent":{"kind":"agent","agentId":%q},"message":%s,"options":{"maxToolCalls":8}}`,
		kit.Agent, message("message-1"))
	status, answer = c.as("/v1/turns", turn)
	c.want("turn", status, answer, "200", `"executionId":"execution-1"`, `"traceId":"trace-2"`, `"status":"succeeded"`, `"type":"turn.started"`,
		`"type":"tool.requested"`, `"type":"turn.completed"`, "2027-02-15")
	status, answer = c.as("/v1/turns", turn)
	c.want("the turn again", status, answer, "200", `"status":"denied"`, `"invalid_request"`)
	found, err := cluster.Run(t.Context(), "-n", w.Namespace, "get", "turns", "--field-selector", "spec.executionId=execution-1", "-o", "name")
	must(t, err)
	if strings.Count(found, "\n") != 1 {
		t.Errorf("the Turns of the execution id: %s", found)
	}

	status, answer = c.as("/v1/messages", message("message-2"))
	c.want("message", status, answer, "202", `"messageId":"message-2"`, `"status":"accepted"`)
	status, answer = c.as("/v1/messages", message("message-2"))
	c.want("the message again", status, answer, "202", `"status":"accepted"`)
	var sent v1alpha1.TurnList
	must(t, cluster.Client.List(t.Context(), &sent, client.InNamespace(w.Namespace), client.MatchingLabels{v1alpha1.LabelOrigin: v1alpha1.OriginMessage}))
	if len(sent.Items) != 1 {
		t.Fatalf("%d Turns of one message", len(sent.Items))
	}
	ended, err := w.Finish(t.Context(), sent.Items[0].Name)
	must(t, err)
	if ended.Status.Outcome != v1alpha1.TurnSucceeded {
		t.Errorf("the message's turn: %s %+v", ended.Status.Outcome, ended.Status.Error)
	}
}
