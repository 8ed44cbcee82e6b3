package kit

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Report reads the report out of a Turn's output, which may be beside the Turn.
func (w *World) Report(ctx context.Context, t *v1alpha1.Turn) (Report, error) {
	ref := t.Status.OutputRef
	if t.Status.Output != nil || ref == nil {
		return ReportOf(t)
	}
	record := &corev1.ConfigMap{}
	var out Report
	if err := w.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: string(ref.Name)}, record); err != nil {
		return out, fmt.Errorf("get the output of turn %s: %w", t.Name, err)
	}
	if err := json.Unmarshal([]byte(record.Data[ref.Key]), &out); err != nil {
		return out, fmt.Errorf("read the report of turn %s: %w", t.Name, err)
	}
	return out, nil
}
