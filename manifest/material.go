package manifest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/objects"
)

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// material takes a Secret or a ConfigMap. No fault repeats what it holds.
func (r *reader) material(d *Document) {
	secret, config := &corev1.Secret{}, &corev1.ConfigMap{}
	var object objects.Object = config
	if d.Kind == kindSecret {
		object = secret
	}
	if json.Unmarshal(d.JSON, object) != nil {
		r.fail(d.Position, "the %s cannot be read: data is base64, stringData text, each a mapping of names to values", d.Kind)
		return
	}
	if !r.named(d, object) {
		return
	}
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
