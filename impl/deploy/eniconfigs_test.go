package deploy

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/internal/must"
)

// TestENIConfigsAreUpstreams: the definition can be applied over amazon-vpc-cni-k8s's (charts/aws-vpc-cni/crds of 1.23.0) and the other way
// round, and every ENIConfig stays what it is: names, scope, version and fields are the same, and their descriptions are left out.
func TestENIConfigsAreUpstreams(t *testing.T) {
	type object = map[string]any
	str := object{"type": "string"}
	want := object{"group": "crd.k8s.amazonaws.com", "scope": "Cluster", "preserveUnknownFields": false,
		"names": object{"kind": "ENIConfig", "plural": "eniconfigs", "singular": "eniconfig"},
		"versions": []any{object{"name": "v1alpha1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": object{"apiVersion": str, "kind": str, "metadata": object{"type": "object"}, "status": object{"type": "object"},
				"spec": object{"type": "object", "required": []any{"subnet"}, "properties": object{"subnet": str,
					"securityGroups": object{"type": "array", "items": str}}}}}}}}}
	text := ENIConfigs
	var have object
	must.Do(t, yaml.UnmarshalStrict(text, &have))
	if have["kind"] != "CustomResourceDefinition" || have["apiVersion"] != "apiextensions.k8s.io/v1" ||
		!reflect.DeepEqual(have["metadata"], object{"name": "eniconfigs.crd.k8s.amazonaws.com"}) || !reflect.DeepEqual(have["spec"], want) {
		t.Errorf("eniconfigs.yaml is\n%v\nexpected the spec\n%v", have, want)
	}
}
