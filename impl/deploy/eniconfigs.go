package deploy

import _ "embed"

// ENIConfigs is the definition of the resource by which custom networking is configured, for kubectl apply: amazon-vpc-cni-k8s's.
//
//go:embed eniconfigs.yaml
var ENIConfigs []byte
