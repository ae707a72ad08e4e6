// Package kindconfig holds the configurations of kind clusters that enilab is run on. They are kind's own format (v1alpha4): `kind create
// cluster --config` takes them too.
package kindconfig

import _ "embed"

// Cluster is a control plane and one worker.
//
//go:embed cluster.yaml
var Cluster []byte
