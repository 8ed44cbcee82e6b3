package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// annotationTemplateFault marks, in memory only, a template that could not be
// decoded. Whoever writes it into a template declares that template unusable.
const annotationTemplateFault = "sharedos.dev/template-fault"

// UnmarshalJSON decodes a spec whose template may be malformed: the schema of the
// resource does not look into it, and one Harness must not keep all others from
// being read. Such a template is empty, and [HarnessSpec.TemplateFault] says why.
func (s *HarnessSpec) UnmarshalJSON(data []byte) error {
	type plain HarnessSpec
	var outer struct {
		*plain   `json:",inline"`
		Template rawJSON `json:"template"`
	}
	outer.plain = (*plain)(s)
	if err := json.Unmarshal(data, &outer); err != nil {
		return err
	}
	s.Template = corev1.PodTemplateSpec{}
	if len(outer.Template) == 0 {
		return nil
	}
	if err := json.Unmarshal(outer.Template, &s.Template); err != nil {
		s.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{annotationTemplateFault: err.Error()},
		}}
	}
	return nil
}

// rawJSON keeps a member as it is.
type rawJSON []byte

// UnmarshalJSON implements the decoder's interface.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = append((*r)[:0], data...)
	return nil
}

// TemplateFault says why the template could not be decoded; empty if it could.
func (s *HarnessSpec) TemplateFault() string {
	return s.Template.Annotations[annotationTemplateFault]
}
