package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

//go:generate go test -run ^TestCommitted$ -update .

const header = "# The aws-node DaemonSet of enilab and what it needs; package impl/deploy writes this.\n"

// Manifests are the objects as YAML, for kubectl apply. The same options give the same bytes.
func Manifests(o Options) ([]byte, error) {
	objects, err := Objects(o)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(header)
	for i, object := range objects {
		text, err := render(object)
		if err != nil {
			return nil, fmt.Errorf("deploy: render %T: %w", object, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// Objects are the ServiceAccount, the ClusterRole, its binding and the DaemonSet, in the order in which they are applied.
func Objects(o Options) ([]runtime.Object, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	if err := o.covered(); err != nil {
		return nil, err
	}
	set, err := o.daemonSet()
	if err != nil {
		return nil, err
	}
	return []runtime.Object{o.account(), role(), o.binding(), set}, nil
}

// render leaves out the status, which is the API server's and which the types write even when it is empty.
func render(object runtime.Object) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}
