package kube

import "fmt"

// object is the head of a manifest.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

type resource struct {
	group      string
	plural     string
	namespaced bool
}

// resources are the kinds the tool's own manifests use.
var resources = map[string]resource{
	"v1/ServiceAccount":                               {"/api/v1", "serviceaccounts", true},
	"v1/ConfigMap":                                    {"/api/v1", "configmaps", true},
	"v1/Service":                                      {"/api/v1", "services", true},
	"v1/PersistentVolume":                             {"/api/v1", "persistentvolumes", false},
	"apps/v1/Deployment":                              {"/apis/apps/v1", "deployments", true},
	"storage.k8s.io/v1/StorageClass":                  {"/apis/storage.k8s.io/v1", "storageclasses", false},
	"rbac.authorization.k8s.io/v1/ClusterRole":        {"/apis/rbac.authorization.k8s.io/v1", "clusterroles", false},
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding": {"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", false},
}

func (o object) path() (string, error) {
	r, ok := resources[o.APIVersion+"/"+o.Kind]
	if !ok {
		return "", fmt.Errorf("kind %s of %s is not known to this tool: add it to the table of resources", o.Kind, o.APIVersion)
	}
	if o.Metadata.Name == "" || r.namespaced != (o.Metadata.Namespace != "") {
		return "", fmt.Errorf("%s %q in namespace %q: name or namespace is wrong", o.Kind, o.Metadata.Name, o.Metadata.Namespace)
	}
	if r.namespaced {
		return fmt.Sprintf("%s/namespaces/%s/%s/%s", r.group, o.Metadata.Namespace, r.plural, o.Metadata.Name), nil
	}
	return fmt.Sprintf("%s/%s/%s", r.group, r.plural, o.Metadata.Name), nil
}
