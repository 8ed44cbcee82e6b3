package kit

import (
	"context"
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
	if err := w.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: string(ref.Name)}, record); err != nil {
		return Report{}, fmt.Errorf("get the output of turn %s: %w", t.Name, err)
	}
	return readReport(t, record.Data[ref.Key])
}
