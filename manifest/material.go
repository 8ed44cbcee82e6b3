package manifest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// material takes a Secret or a ConfigMap. No fault repeats what it holds.
func (r *reader) material(d *Document) {
	var meta *metav1.ObjectMeta
	var into any
	secret, config := &corev1.Secret{}, &corev1.ConfigMap{}
	if meta, into = &config.ObjectMeta, config; d.Kind == kindSecret {
		meta, into = &secret.ObjectMeta, secret
	}
	if json.Unmarshal(d.JSON, into) != nil {
		r.fail(d.Position, "the %s cannot be read: data is base64, stringData text, each a mapping of names to values", d.Kind)
		return
	}
	if meta.Name == "" {
		r.fail(d.At("metadata"), "metadata.name: must be set")
		return
	}
	if meta.Namespace == "" {
		meta.Namespace = r.opts.Namespace
	}
	id := d.Kind + " " + meta.Namespace + "/" + meta.Name
	if first, twice := r.seen[id]; twice {
		r.fail(d.At("metadata.name"), "%s %q is given twice, first in %s", d.Kind, meta.Name, first)
		return
	}
	r.seen[id] = d.At("metadata.name")
	if d.Kind == kindConfigMap {
		r.set.ConfigMaps = append(r.set.ConfigMaps, *config)
		return
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	r.set.Secrets = append(r.set.Secrets, *secret)
}
