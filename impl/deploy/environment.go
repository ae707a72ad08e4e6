package deploy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// stock is the environment of EKS's aws-node DaemonSet (amazon-vpc-cni-k8s 1.23.1, config/master/aws-k8s-cni.yaml), of both its
// containers. Those that are empty are there to be filled in.
var stock = map[string]string{
	"ADDITIONAL_ENI_TAGS":                   "{}",
	"ANNOTATE_POD_IP":                       "false",
	"AWS_VPC_CNI_NODE_PORT_SUPPORT":         "true",
	"AWS_VPC_ENI_MTU":                       "9001",
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    "false",
	"AWS_VPC_K8S_CNI_EXTERNALSNAT":          "false",
	"AWS_VPC_K8S_CNI_LOGLEVEL":              "DEBUG",
	"AWS_VPC_K8S_CNI_LOG_FILE":              "/host/var/log/aws-routed-eni/ipamd.log",
	"AWS_VPC_K8S_CNI_RANDOMIZESNAT":         "prng",
	"AWS_VPC_K8S_CNI_VETHPREFIX":            "eni",
	"AWS_VPC_K8S_PLUGIN_LOG_FILE":           "/var/log/aws-routed-eni/plugin.log",
	"AWS_VPC_K8S_PLUGIN_LOG_LEVEL":          "DEBUG",
	"CLUSTER_ENDPOINT":                      "",
	"CLUSTER_NAME":                          "",
	"DISABLE_INTROSPECTION":                 "false",
	"DISABLE_METRICS":                       "false",
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": "false",
	"DISABLE_TCP_EARLY_DEMUX":               "false",
	"ENABLE_IMDS_ONLY_MODE":                 "false",
	"ENABLE_IPv4":                           "true",
	"ENABLE_IPv6":                           "false",
	"ENABLE_MULTI_NIC":                      "false",
	"ENABLE_POD_ENI":                        "false",
	"ENABLE_PREFIX_DELEGATION":              "false",
	"ENABLE_SUBNET_DISCOVERY":               "true",
	"NETWORK_POLICY_ENFORCING_MODE":         "standard",
	"VPC_CNI_VERSION":                       "v1.23.1",
	"VPC_ID":                                "",
	"WARM_ENI_TARGET":                       "1",
	"WARM_PREFIX_TARGET":                    "1",
}

// fields are what only the pod knows of itself.
var fields = map[string]string{
	"MY_NODE_NAME":     "spec.nodeName",
	"MY_POD_NAME":      "metadata.name",
	"MY_POD_NAMESPACE": "metadata.namespace",
}

// environment is what both containers get, sorted by name. `ipamd init` and the daemon decide by the same settings.
func (o *Options) environment() []corev1.EnvVar {
	all := map[string]corev1.EnvVar{}
	for name, value := range stock {
		all[name] = corev1.EnvVar{Name: name, Value: value}
	}
	for name, field := range fields {
		all[name] = corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
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
