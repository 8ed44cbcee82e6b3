package narrowing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// owned are the entries of spec.disabledToolNamespaces that were applied by us,
// sorted, as the API server keeps account of it (FieldsV1: a set's values are the
// keys "v:<JSON>").
func owned(p *v1alpha1.Principal) ([]string, error) {
	out := []string{}
	for i := range p.ManagedFields {
		entry := &p.ManagedFields[i]
		if entry.Manager != FieldOwner || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec struct {
				Entries map[string]json.RawMessage `json:"f:disabledToolNamespaces"`
			} `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read metadata.managedFields of principal %q: %w", p.Name, err)
		}
		for key := range fields.Spec.Entries {
			value, isValue := strings.CutPrefix(key, "v:")
			if !isValue {
				continue
			}
			var name string
			if err := json.Unmarshal([]byte(value), &name); err != nil {
				return nil, fmt.Errorf("read metadata.managedFields of principal %q: %w", p.Name, err)
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
