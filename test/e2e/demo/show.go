package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

// progress is one line about the Turn's state.
func progress(t *v1alpha1.Turn) string {
	line := fmt.Sprintf("turn/%s %s", t.Name, t.State())
	if a := t.Status.Admission; a != nil {
		line += fmt.Sprintf(", %d tools under %d grants", a.ToolCount, a.GrantCount)
	}
	if ready := v1alpha1.FindCondition(t.Status.Conditions, v1alpha1.TurnConditionBridgeReady); ready != nil && t.State() == v1alpha1.TurnStateAdmitted {
		line += ": " + ready.Message
	}
	if t.IsFinished() && t.Status.Usage != nil {
		line += fmt.Sprintf(", %d calls, %d denied", t.Status.Usage.ToolCalls, t.Status.Usage.Denied)
	}
	return line
}

// show prints what a person wants to see.
func (d *demo) show(ctx context.Context) error {
	table, err := d.cluster.Run(ctx, "get", "turns", "--namespace", namespace)
	if err != nil {
		return err
	}
	d.print("\n$ kubectl get turns -n %s\n%s", namespace, table)
	report, err := kit.ReportOf(d.turn)
	if err != nil {
		return err
	}
	d.print("\nThe agent was offered: %s\n", strings.Join(report.Tools, ", "))
	d.print("\nWhat it called, and what the kernel said:\n%s", callTable(report.Calls))
	d.print("\nIts output, as the Turn keeps it:\n%s\n", indent(pretty(*d.turn.Status.Output)))
	d.next()
	return nil
}

func callTable(calls []kit.CallReport) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range calls {
		verdict, code := "allowed", "allowed"
		if c.IsError {
			verdict, code = c.Status, c.Code
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Tool, compact(c.Arguments), verdict, code)
	}
	_ = w.Flush()
	return b.String()
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

func pretty(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return text
	}
	return string(raw)
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// next says what to try, with commands that work as they stand.
func (d *demo) next() {
	d.print("\nDone in %.0f s. Try next:\n", timeSince(d))
	if d.cluster.Kubeconfig != "" {
		d.print("  export KUBECONFIG=%s\n", d.cluster.Kubeconfig)
		if d.cluster.Kubectl != "kubectl" {
			d.print("  alias kubectl=%s\n", d.cluster.Kubectl)
		}
	}
	d.print(`  # from the folder of the repository: take grep and read away from the assistant, run the second Turn, see less:
  kubectl -n %[1]s patch grant read-atlas --type=json \
    -p '[{"op":"replace","path":"/spec/capabilities/0/actions","value":["list","stat"]}]'
  kubectl apply -f config/samples/51-turn-status-report-2.yaml
  kubectl -n %[1]s get turns
  kubectl -n %[1]s get turns -o custom-columns=NAME:.metadata.name,CATALOGUE:.status.admission.catalogHash
  # every refusal, as Events on the Turn:
  kubectl -n %[1]s describe turn %[2]s
`, namespace, turnName)
}

func timeSince(d *demo) float64 { return time.Since(d.started).Seconds() }
