package apiserver

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is one that is served.
type resource struct {
	group, version, plural, kind string

	namespaced bool
	short      []string
	status     bool           // it has /status, and what is written elsewhere leaves the status alone
	custom     bool           // of a CustomResourceDefinition: no strategic merge, and an update says which version it is of
	cluster    bool           // the Cluster has them: clients neither make nor delete any
	proto      func() message // what a body in protobuf is decoded into; nil: there is none
	fields     []string       // field selectors beside metadata.name and metadata.namespace
}

var eventFields = []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
	"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"}

// message is an object that can be read from protobuf.
type message interface{ Unmarshal([]byte) error }

// made makes an empty one.
func made[T any, P interface {
	*T
	message
}]() message {
	return P(new(T))
}

// builtin are those of Kubernetes that CNIs read or write, and those of custom resources that amazon-vpc-cni-k8s and its neighbours on a
// node come with.
func builtin() []*resource {
	return []*resource{
		{version: "v1", plural: "namespaces", kind: "Namespace", proto: made[corev1.Namespace], short: []string{"ns"}, status: true, fields: []string{"status.phase"}},
		{version: "v1", plural: "nodes", kind: "Node", proto: made[corev1.Node], short: []string{"no"}, status: true, cluster: true, fields: []string{"spec.unschedulable"}},
		{version: "v1", plural: "pods", kind: "Pod", proto: made[corev1.Pod], namespaced: true, short: []string{"po"}, status: true, cluster: true,
			fields: []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
				"status.podIP", "status.nominatedNodeName"}},
		{version: "v1", plural: "configmaps", kind: "ConfigMap", proto: made[corev1.ConfigMap], namespaced: true, short: []string{"cm"}},
		{version: "v1", plural: "endpoints", kind: "Endpoints", namespaced: true, short: []string{"ep"}},
		{version: "v1", plural: "events", kind: "Event", proto: made[corev1.Event], namespaced: true, short: []string{"ev"}, fields: eventFields},
		{version: "v1", plural: "secrets", kind: "Secret", proto: made[corev1.Secret], namespaced: true, fields: []string{"type"}},
		{version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", proto: made[corev1.ServiceAccount], namespaced: true, short: []string{"sa"}},
		{version: "v1", plural: "services", kind: "Service", proto: made[corev1.Service], namespaced: true, short: []string{"svc"}, status: true, fields: []string{"spec.clusterIP", "spec.type"}},
		{group: "apiextensions.k8s.io", version: "v1", plural: crds, kind: "CustomResourceDefinition", short: []string{"crd", "crds"}, status: true},
		{group: "apps", version: "v1", plural: "daemonsets", kind: "DaemonSet", proto: made[appsv1.DaemonSet], namespaced: true, short: []string{"ds"}, status: true},
		{group: "apps", version: "v1", plural: "deployments", kind: "Deployment", proto: made[appsv1.Deployment], namespaced: true, short: []string{"deploy"}, status: true},
		{group: "apps", version: "v1", plural: "replicasets", kind: "ReplicaSet", proto: made[appsv1.ReplicaSet], namespaced: true, short: []string{"rs"}, status: true},
		{group: "coordination.k8s.io", version: "v1", plural: "leases", kind: "Lease", proto: made[coordinationv1.Lease], namespaced: true},
		{group: "crd.k8s.amazonaws.com", version: "v1alpha1", plural: "eniconfigs", kind: "ENIConfig", custom: true},
		{group: "discovery.k8s.io", version: "v1", plural: "endpointslices", kind: "EndpointSlice", proto: made[discoveryv1.EndpointSlice], namespaced: true},
		{group: "events.k8s.io", version: "v1", plural: "events", kind: "Event", proto: made[eventsv1.Event], namespaced: true, short: []string{"ev"}, fields: []string{"reason", "regarding.kind", "regarding.name", "regarding.namespace", "type"}},
		{group: "networking.k8s.aws", version: "v1alpha1", plural: "policyendpoints", kind: "PolicyEndpoint", namespaced: true, status: true, custom: true},
		{group: "networking.k8s.aws", version: "v1alpha1", plural: "clusterpolicyendpoints", kind: "ClusterPolicyEndpoint", status: true, custom: true},
		{group: "networking.k8s.io", version: "v1", plural: "networkpolicies", kind: "NetworkPolicy", proto: made[networkingv1.NetworkPolicy], namespaced: true, short: []string{"netpol"}},
		{group: "vpcresources.k8s.aws", version: "v1alpha1", plural: "cninodes", kind: "CNINode", short: []string{"cnd"}, status: true, custom: true},
		{group: "vpcresources.k8s.aws", version: "v1beta1", plural: "securitygrouppolicies", kind: "SecurityGroupPolicy", namespaced: true, short: []string{"sgp"}, custom: true},
	}
}

const (
	crdGroup = "apiextensions.k8s.io"
	crds     = "customresourcedefinitions"
)

func (r *resource) groupVersion() string {
	return schema.GroupVersion{Group: r.group, Version: r.version}.String()
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

func (r *resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.group, Kind: r.kind}
}

// selectable says whether a field selector may ask for it.
func (r *resource) selectable(field string) bool {
	return field == "metadata.name" || field == "metadata.namespace" && r.namespaced || slices.Contains(r.fields, field)
}

// served are a CustomResourceDefinition's resources, one per version.
func served(crd map[string]any) (out []*resource) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		if on, _ := v["served"].(bool); !on {
			continue
		}
		r := &resource{group: text(spec, "group"), version: text(v, "name"), plural: text(names, "plural"), kind: text(names, "kind"),
			namespaced: text(spec, "scope") == "Namespaced", custom: true}
		sub, _ := v["subresources"].(map[string]any)
		_, r.status = sub["status"]
		short, _ := names["shortNames"].([]any)
		for _, s := range short {
			if s, ok := s.(string); ok {
				r.short = append(r.short, s)
			}
		}
		if r.group != "" && r.version != "" && r.plural != "" && r.kind != "" {
			out = append(out, r)
		}
	}
	return out
}

// text is a string that a map holds, "" for anything else.
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// serve makes resources known, in the place of those of the same name and version.
func (s *store) serve(add ...*resource) {
	for _, r := range add {
		s.resources = slices.DeleteFunc(s.resources, func(old *resource) bool {
			return old.group == r.group && old.version == r.version && old.plural == r.plural
		})
		s.resources = append(s.resources, r)
	}
	slices.SortStableFunc(s.resources, func(a, b *resource) int {
		return strings.Compare(a.groupVersion()+"/"+a.plural, b.groupVersion()+"/"+b.plural)
	})
}

// verbs are what discovery says that a client may do.
func (r *resource) verbs() metav1.Verbs {
	if r.cluster {
		return metav1.Verbs{"get", "list", "patch", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
}

// resourceList is the discovery of one group and version; false if nothing of it is served.
func (s *store) resourceList(group, version string) (*metav1.APIResourceList, bool) {
	out := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: group, Version: version}.String()}
	for _, r := range s.resources {
		if r.group != group || r.version != version {
			continue
		}
		out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.plural, SingularName: strings.ToLower(r.kind), Namespaced: r.namespaced,
			Kind: r.kind, Verbs: r.verbs(), ShortNames: r.short})
		if r.status {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.plural + "/status", Namespaced: r.namespaced, Kind: r.kind,
				Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
	}
	return out, len(out.APIResources) > 0
}

// groups are the named groups that are served.
func (s *store) groups() []metav1.APIGroup {
	var out []metav1.APIGroup
	for _, r := range s.resources {
		if r.group == "" {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: r.groupVersion(), Version: r.version}
		at := slices.IndexFunc(out, func(g metav1.APIGroup) bool { return g.Name == r.group })
		if at < 0 {
			out = append(out, metav1.APIGroup{Name: r.group, PreferredVersion: v})
			at = len(out) - 1
		}
		if !slices.Contains(out[at].Versions, v) {
			out[at].Versions = append(out[at].Versions, v)
		}
	}
	return out
}
