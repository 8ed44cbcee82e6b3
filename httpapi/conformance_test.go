package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// TestConformanceThroughHTTP is the HTTP door of the adversary matrix: the adversary
// is a caller that the resolver knows as the world's actor, and writes the bytes of
// its requests itself.
func TestConformanceThroughHTTP(t *testing.T) {
	kerneltest.Conform(t, &httpDoor{}, "../docs/conformance.md")
}

type httpDoor struct{ last *httpVisit }

type httpVisit struct {
	server *httptest.Server
	world  *kerneltest.World
}

// Name implements [kerneltest.Door].
func (*httpDoor) Name() string { return kerneltest.DoorHTTP }

// Enter implements [kerneltest.Door].
func (d *httpDoor) Enter(tb testing.TB, w *kerneltest.World) kerneltest.Seat {
	tb.Helper()
	k := w.Kernel(tb)
	v := &httpVisit{world: w}
	v.server = serve(tb, httpapi.Options{
		API: httpapi.NewKernelAPI(k, nil),
		Resolver: httpapi.ContextResolverFunc(func(r *http.Request) (contract.AccessContext, error) {
			if r.Header.Get("Authorization") != "Bearer actor" {
				return contract.AccessContext{}, httpapi.ErrUnauthenticated
			}
			return w.Context(), nil
		}),
	})
	d.last = v
	return kerneltest.Seat{
		NoSteps: true,
		Tools: func() []string {
			var tools []contract.ToolDefinition
			if err := json.Unmarshal([]byte(v.ask(tb, http.MethodGet, "/v1/tools", "").body), &tools); err != nil {
				return nil
			}
			names := make([]string, 0, len(tools))
			for i := range tools {
				names = append(names, tools[i].Name)
			}
			return names
		},
		Call: func(id, tool, arguments string, _ *int64) kerneltest.Answer {
			return v.answer(tb, http.MethodPost, "/v1/tools/invoke", mustJSON(tb, map[string]any{
				"id": id, "tool": tool, "arguments": json.RawMessage(arguments), "traceId": kerneltest.TraceID, "requestedAt": contract.At(kerneltest.Epoch),
			}))
		},
		Authorize: func(need contract.CapabilityRequirement) kerneltest.Answer {
			return v.answer(tb, http.MethodPost, "/v1/authorize", mustJSON(tb, need))
		},
		Operate: func(op contract.ResourceOperation) kerneltest.Answer {
			op.Context = nil
			return v.answer(tb, http.MethodPost, "/v1/resources/invoke", mustJSON(tb, op))
		},
		Send: func(m contract.MessageEnvelope) kerneltest.Answer {
			return v.answer(tb, http.MethodPost, "/v1/messages", mustJSON(tb, m))
		},
	}
}

func mustJSON(tb testing.TB, v any) string {
	tb.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

func (v *httpVisit) ask(tb testing.TB, method, path, body string, headers ...string) got {
	tb.Helper()
	return do(tb, method, v.server.URL+path, body, append([]string{"authorization: Bearer actor", "content-type: application/json"}, headers...)...)
}

// answer is what the adversary learns. A refused request is a denial: the kernel was
// not even asked.
func (v *httpVisit) answer(tb testing.TB, method, path, body string) kerneltest.Answer {
	tb.Helper()
	g := v.ask(tb, method, path, body)
	var a struct {
		Allowed    *bool
		ReasonCode string
		Status     string
		Error      *contract.ProtocolError
	}
	if err := json.Unmarshal([]byte(g.body), &a); err != nil {
		tb.Fatalf("status %d, body %q: %v", g.status, g.body, err)
	}
	switch {
	case g.status >= http.StatusBadRequest:
		return kerneltest.AnswerOf("denied", a.Error)
	case a.Allowed != nil && *a.Allowed:
		return kerneltest.Answer{Status: "allowed"}
	case a.Allowed != nil:
		return kerneltest.Answer{Status: "denied", Code: a.ReasonCode}
	default:
		return kerneltest.AnswerOf(a.Status, a.Error)
	}
}

// Probe implements [kerneltest.Prober].
func (d *httpDoor) Probe(row string, t *kerneltest.Trial) {
	t.TB.Helper()
	switch row {
	case "wire-tricks":
		d.probeWire(t)
	case "grant-as-data":
		d.probeSmuggling(t)
	}
}

// enter opens a door to a world whose actor may read below Work.
func (d *httpDoor) enter(t *kerneltest.Trial) (*httpVisit, kerneltest.Seat, *kerneltest.Plane) {
	t.TB.Helper()
	plane := &kerneltest.Plane{}
	w := kerneltest.New(kerneltest.MakeGrant("read").Descendants("files", []string{"Work"}, "read").Obj())
	w.Options.Tools = kerneltest.FilesTools(plane)
	w.Options.Resources = map[string]kernel.ResourceProvider{"files": plane}
	seat := t.Enter(w)
	return d.last, seat, plane
}

const (
	readWork = `{"id":"c1","tool":"files.read","arguments":{"path":["Work"]},"traceId":"trace-1","requestedAt":"2026-12-01T09:00:00.000Z"}`
	operate  = `{"operationId":"o1","resource":{"namespace":"files","path":["Other"]},"action":"read"}`
	turn     = `{"version":"1","executionId":"e1","agent":{"kind":"agent","agentId":"alice-assistant"},"message":{"version":"1","id":"m1","sender":{"kind":"human","userId":"alice"},"receiver":{"kind":"agent","agentId":"alice-assistant"},"purpose":"atlas-status","payload":{},"traceId":"trace-1","createdAt":"2026-12-01T09:00:00.000Z"}}`
)

// with puts another member at the front of an object.
func with(object, member string) string { return "{" + member + "," + object[1:] }

func (d *httpDoor) probeWire(t *kerneltest.Trial) {
	t.TB.Helper()
	v, seat, plane := d.enter(t)
	for name, body := range map[string]string{
		"duplicate name":               strings.Replace(readWork, `"tool":"files.read"`, `"tool":"files.list","tool":"files.read"`, 1),
		"duplicate argument":           strings.Replace(readWork, `"path":["Work"]`, `"path":["Work"],"path":["Other"]`, 1),
		"name in two cases":            with(readWork, `"Tool":"files.list"`),
		"name in another case":         strings.Replace(readWork, `"tool"`, `"TOOL"`, 1),
		"name escaped and not":         with(readWork, `"\u0074ool":"files.list"`),
		"a batch":                      "[" + readWork + "," + readWork + "]",
		"two documents":                readWork + readWork,
		"a byte order mark":            "\ufeff" + readWork,
		"not UTF-8":                    strings.Replace(readWork, "Work", "Work\xff", 1),
		"half a surrogate pair":        strings.Replace(readWork, "Work", `Work\ud800`, 1),
		"a form":                       "tool=files.read",
		"a JSON string of the request": mustJSON(t.TB, readWork),
	} {
		g := v.ask(t.TB, http.MethodPost, "/v1/tools/invoke", body)
		t.Holds(name, g.status == http.StatusBadRequest, "status %d, body %s", g.status, g.body)
	}
	for name, path := range map[string]string{
		"trailing slash": "/v1/tools/invoke/", "double slash": "//v1/tools/invoke", "inner double slash": "/v1//tools/invoke",
		"escaped slash": "/v1%2Ftools/invoke", "escaped letter": "/v1/tools/%69nvoke", "dot segment": "/v1/./tools/invoke",
		"parent segment": "/v1/x/../tools/invoke", "escaped parent": "/v1/x/%2e%2e/tools/invoke", "another case": "/V1/tools/invoke",
		"suffix": "/v1/tools/invoke.json", "matrix parameter": "/v1/tools/invoke;a=b", "below health": "/health/v1/tools/invoke",
	} {
		g := v.ask(t.TB, http.MethodPost, path, readWork)
		t.Holds(name, g.status == http.StatusNotFound, "status %d, body %s", g.status, g.body)
	}
	for name, headers := range map[string][]string{
		"no token": {"x-sharedos-actor: alice-assistant"}, "another scheme": {"authorization: Basic actor"}, "a cookie": {"cookie: authorization=Bearer actor"},
	} {
		g := do(t.TB, http.MethodPost, v.server.URL+"/v1/tools/invoke", readWork, headers...)
		t.Holds(name, g.status == http.StatusUnauthorized, "status %d, body %s", g.status, g.body)
	}
	override := v.ask(t.TB, http.MethodGet, "/v1/tools/invoke", readWork, "x-http-method-override: POST")
	t.Holds("method override", override.status == http.StatusMethodNotAllowed, "status %d", override.status)
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
	t.Control("an ordinary call", seat.Call("control", "files.read", `{"path":["Work"]}`, nil))
}

// probeSmuggling: no body carries authority, under no name.
func (d *httpDoor) probeSmuggling(t *kerneltest.Trial) {
	t.TB.Helper()
	v, seat, plane := d.enter(t)
	grant := mustJSON(t.TB, kerneltest.MakeGrant("mine").Descendants("files", []string{}, "*").Obj())
	context := mustJSON(t.TB, v.world.Context())
	for _, member := range []string{
		`"context":` + context, `"Context":` + context, `"grants":[` + grant + `]`, `"tools":[]`, `"actor":{"kind":"human","userId":"alice"}`, `"authority":{"kind":"human","userId":"alice"}`,
	} {
		for path, body := range map[string]string{
			"/v1/resources/invoke": operate, "/v1/turns": turn, "/v1/tools/invoke": readWork, "/v1/authorize": `{"resource":{"namespace":"files","path":["Other"]},"action":"read"}`,
		} {
			g := v.ask(t.TB, http.MethodPost, path, with(body, member))
			t.Holds(path+" with "+member, g.status == http.StatusBadRequest && g.code(t.TB) == contract.CodeInvalidRequest, "status %d, body %s", g.status, g.body)
		}
	}
	t.Holds("nothing ran", len(plane.Operations()) == 0, "%d operations ran", len(plane.Operations()))
	t.Control("an ordinary call", seat.Call("control", "files.read", `{"path":["Work"]}`, nil))
}
