package gitops

import (
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"sigs.k8s.io/yaml"
)

// read reads a file strictly.
func read(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// evaluators reads the expressions that are patched into a Kustomization.
func evaluators(t *testing.T) map[string]*cel.StatusEvaluator {
	t.Helper()
	var patch struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, "../../config/flux/health.yaml", &patch)
	out := map[string]*cel.StatusEvaluator{}
	for i := range patch.Spec.HealthCheckExprs {
		check := &patch.Spec.HealthCheckExprs[i]
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatalf("%s: %v", check.Kind, err)
		}
		out[check.Kind] = evaluator
	}
	return out
}

func TestFlux(t *testing.T) {
	evaluators := evaluators(t)
	for _, s := range states {
		result, err := evaluators[s.kind].Evaluate(t.Context(), s.in(t, generation))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if result.Status != s.flux {
			t.Errorf("%s: %s, want %s", s, result.Status, s.flux)
		}
	}
}

// Before the manager has looked, and after an edit that it has not seen, nothing is
// current. An object without a status has nothing to evaluate: Flux asks again.
func TestFluxBeforeTheManager(t *testing.T) {
	evaluators := evaluators(t)
	for _, kind := range kinds() {
		if result, err := evaluators[kind].Evaluate(t.Context(), object(t, kind, 0)); err == nil && result.Status != inProgress {
			t.Errorf("%s without a status: %s", kind, result.Status)
		}
	}
	for _, s := range states {
		result, err := evaluators[s.kind].Evaluate(t.Context(), s.in(t, before))
		if err != nil || result.Status != inProgress {
			t.Errorf("%s, looked at before the last edit: %v %v, want %s", s, result, err, inProgress)
		}
	}
}

// What `wait: true` sees without the expressions.
func TestKstatus(t *testing.T) {
	for _, s := range states {
		for observed, want := range map[int64]status.Status{generation: s.plain, before: inProgress} {
			result, err := status.Compute(s.in(t, observed))
			if err != nil || result.Status != want {
				t.Errorf("%s at generation %d: %v %v, want %s", s, observed, result, err, want)
			}
		}
	}
}

// The tools never disagree about what is well: where Argo CD says Healthy, Flux says
// current, and where Flux says failed, Argo CD says Degraded.
func TestToolsAgree(t *testing.T) {
	for _, s := range states {
		if s.argo == healthy && s.flux != current || s.flux == failed && s.argo != degraded || s.argo == progressing && s.flux != inProgress {
			t.Errorf("%s: Argo CD says %s, Flux says %s", s, s.argo, s.flux)
		}
	}
}
