package gitops

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scripts reads the ConfigMap that is merged into Argo CD's.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	var config corev1.ConfigMap
	read(t, "../../config/argocd/health.yaml", &config)
	out := map[string]string{}
	for key, script := range config.Data {
		kind, ok := strings.CutPrefix(key, "resource.customizations.health.sharedos.dev_")
		if !ok {
			t.Errorf("key %q is no health check of ours", key)
		}
		out[kind] = script
	}
	return out
}

// assess runs a script as Argo CD does: base, table and package are there, the object
// is obj, and the answer is a table.
func assess(t *testing.T, script string, object *unstructured.Unstructured) (word, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.SetContext(t.Context())
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", value(l, object.Object))
	if err := l.DoString(script); err != nil {
		t.Fatalf("%s: %v", object.GetKind(), err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("%s: the script answers %s", object.GetKind(), l.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

// value is a JSON value in Lua.
func value(l *lua.LState, of any) lua.LValue {
	switch v := of.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, value(l, item))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(value(l, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

func TestArgoCD(t *testing.T) {
	scripts := scripts(t)
	for _, s := range states {
		word, message := assess(t, scripts[s.kind], s.in(t, generation))
		if word != s.argo || message != string(s.reason)+": because" {
			t.Errorf("%s: %s (%s), want %s", s, word, message, s.argo)
		}
	}
}

// What nobody has looked at is neither healthy nor broken. A Turn cannot be edited but
// for its cancellation, which changes nothing about how it ended.
func TestArgoCDBeforeTheManager(t *testing.T) {
	scripts := scripts(t)
	for _, kind := range kinds() {
		if word, _ := assess(t, scripts[kind], object(t, kind, 0)); word != progressing {
			t.Errorf("%s without a status: %s, want %s", kind, word, progressing)
		}
	}
	for _, s := range states {
		want := progressing
		if s.kind == "Turn" {
			want = s.argo
		}
		if word, _ := assess(t, scripts[s.kind], s.in(t, before)); word != want {
			t.Errorf("%s, looked at before the last edit: %s, want %s", s, word, want)
		}
	}
}
