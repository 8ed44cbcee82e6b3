package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/objects"
)

// KindAuthorizationTest is the kind of a file of test cases. It lies beside the
// manifests and is never applied: no cluster serves it.
const KindAuthorizationTest = "AuthorizationTest"

// Set is what was read.
type Set struct {
	// Objects are those of the five kinds, in the order of the files.
	Objects []objects.Object
	// Tests are the documents of kind AuthorizationTest.
	Tests []*Document
	// Secrets and ConfigMaps are there if [Options].Material asks for them. What a
	// Secret gives as stringData is in its Data.
	Secrets    []corev1.Secret
	ConfigMaps []corev1.ConfigMap

	documents map[string]*Document
}

// Document returns the document of an object, or nil.
func (s *Set) Document(o objects.Object) *Document { return s.documents[identity(o)] }

// Position returns where a field of an object is, as in spec.capabilities[0].
func (s *Set) Position(o objects.Object, field string) Position {
	if d := s.Document(o); d != nil {
		return d.At(field)
	}
	return Position{}
}

func identity(o objects.Object) string {
	return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
}

// object checks and decodes a document of the five kinds.
func (r *reader) object(d *Document) {
	if faults := r.schemas.check(d); len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return
	}
	object := newObject(d.Kind)
	if object == nil {
		r.fail(d.At("kind"), "%s has no kind %q", d.APIVersion, d.Kind)
		return
	}
	if err := r.decode(d.JSON, object); err != nil {
		r.fail(d.At("metadata"), "%v", err)
		return
	}
	if h, ok := object.(*v1alpha1.Harness); ok {
		if fault := h.Spec.TemplateFault(); fault != "" {
			r.fail(d.At("spec.template"), "spec.template: %s", fault)
			return
		}
	}
	if !r.named(d, object) {
		return
	}
	if r.set.documents == nil {
		r.set.documents = map[string]*Document{}
	}
	r.set.documents[identity(object)] = d
	r.set.Objects = append(r.set.Objects, object)
}

// named gives an object its namespace, and reports a fault when it has no name or is
// given twice.
func (r *reader) named(d *Document, object objects.Object) bool {
	if object.GetName() == "" {
		r.fail(d.At("metadata"), "metadata.name: must be set")
		return false
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(r.opts.Namespace)
	}
	id := identity(object)
	if first, twice := r.seen[id]; twice {
		r.fail(d.At("metadata.name"), "%s %q is given twice, first in %s", d.Kind, object.GetName(), first)
		return false
	}
	r.seen[id] = d.At("metadata.name")
	return true
}

// newDecoder makes a strict decoder of the five kinds.
func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true}), nil
}

// decode is strict and drops the status.
func (r *reader) decode(data []byte, into objects.Object) error {
	_, _, err := r.decoder.Decode(withoutStatus(data), nil, into)
	return err
}

func withoutStatus(data []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members["status"] == nil {
		return data
	}
	delete(members, "status")
	out, err := json.Marshal(members)
	if err != nil {
		return data
	}
	return bytes.TrimSpace(out)
}

func newObject(kind string) objects.Object {
	switch kind {
	case "Principal":
		return &v1alpha1.Principal{}
	case "Grant":
		return &v1alpha1.Grant{}
	case "ToolNamespace":
		return &v1alpha1.ToolNamespace{}
	case "Harness":
		return &v1alpha1.Harness{}
	case "Turn":
		return &v1alpha1.Turn{}
	default:
		return nil
	}
}
