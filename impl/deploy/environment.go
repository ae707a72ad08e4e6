package deploy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// fields are what only the pod knows of itself.
var fields = map[string]string{
	"MY_NODE_NAME":     "spec.nodeName",
	"MY_POD_NAME":      "metadata.name",
	"MY_POD_NAMESPACE": "metadata.namespace",
}

// environment is what both containers get, sorted by name. It has nothing that was not asked for: an operator's
// settings, which are there already, stay, and where there are none the daemon's defaults are EKS's.
func (o *Options) environment() []corev1.EnvVar {
	all := map[string]corev1.EnvVar{}
	for name, field := range fields {
		all[name] = corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field}}}
	}
	for name, value := range o.Env {
		all[name] = corev1.EnvVar{Name: name, Value: value}
	}
	out := make([]corev1.EnvVar, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}
