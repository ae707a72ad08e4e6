package server

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/kube"
)

// The types below are what the API's objects have of k8s.io/api/core/v1 here.

type meta struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp *string           `json:"creationTimestamp"` // null in a bookmark
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

type node struct {
	Kind       string    `json:"kind,omitempty"`
	APIVersion string    `json:"apiVersion,omitempty"`
	Metadata   meta      `json:"metadata"`
	Spec       nodeSpec  `json:"spec"`
	Status     nodeState `json:"status"`
}

type nodeSpec struct {
	ProviderID    string  `json:"providerID,omitempty"`
	Unschedulable bool    `json:"unschedulable,omitempty"`
	Taints        []taint `json:"taints,omitempty"`
}

type taint struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
}

type nodeState struct {
	Capacity    map[string]string `json:"capacity,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Conditions  []condition       `json:"conditions,omitempty"`
	Addresses   []address         `json:"addresses,omitempty"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

type address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

type pod struct {
	Metadata meta      `json:"metadata"`
	Spec     podSpec   `json:"spec"`
	Status   podStatus `json:"status"`
}

type podSpec struct {
	NodeName    string `json:"nodeName"`
	HostNetwork bool   `json:"hostNetwork,omitempty"`
}

type podStatus struct {
	Phase  string  `json:"phase"`
	HostIP string  `json:"hostIP,omitempty"`
	PodIP  string  `json:"podIP,omitempty"`
	PodIPs []podIP `json:"podIPs,omitempty"`
}

type podIP struct {
	IP string `json:"ip"`
}

type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue,omitempty"`
	Remaining       int    `json:"remainingItemCount,omitempty"`
}

type list[T any] struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   listMeta `json:"metadata"`
	Items      []T      `json:"items"`
}

// stamp is an instant of the model as the API writes it.
func (a *api) stamp(at time.Duration) *string {
	s := a.epoch.Add(at).UTC().Format(time.RFC3339)
	return &s
}

// nodeObject is a node as the API shows it.
func (a *api) nodeObject(name string, v NodeInfo, version uint64) *node {
	ready := condition{"Ready", "True", "KubeletReady"}
	if v.NotReady {
		ready = condition{"Ready", "False", "KubeletNotReady"}
	}
	n := &node{
		Kind: "Node", APIVersion: "v1",
		Metadata: meta{Name: name, UID: v.UID, ResourceVersion: format(version), CreationTimestamp: a.stamp(0), Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:   nodeState{Conditions: []condition{ready}, Addresses: []address{{"Hostname", name}}},
	}
	label := func(key, value string) {
		if value != "" {
			n.Metadata.Labels[key] = value
		}
	}
	label("node.kubernetes.io/instance-type", v.Type)
	label("topology.kubernetes.io/zone", v.Zone)
	maps.Copy(n.Metadata.Labels, v.Labels)
	n.Metadata.Annotations = v.Annotations
	if v.Cordoned {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []taint{{"node.kubernetes.io/unschedulable", "NoSchedule"}}
	}
	if v.Instance != "" {
		n.Spec.ProviderID = "aws:///" + v.Zone + "/" + v.Instance
	}
	if v.MaxPods > 0 {
		pods := map[string]string{"pods": strconv.Itoa(v.MaxPods)}
		n.Status.Capacity, n.Status.Allocatable = pods, pods
	}
	if v.Address.IsValid() {
		n.Status.Addresses = append(n.Status.Addresses, address{"InternalIP", v.Address.String()})
	}
	return n
}

// configObject is an ENIConfig as the API shows it.
func (a *api) configObject(e *kube.ENIConfig) any {
	return map[string]any{"kind": "ENIConfig", "apiVersion": "crd.k8s.amazonaws.com/v1alpha1",
		"metadata": meta{Name: e.Name, CreationTimestamp: a.stamp(0)},
		"spec":     configSpec{e.Subnet, e.Groups}}
}

type configSpec struct {
	Subnet         string   `json:"subnet"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// podObject is a pod as the API shows it.
func (a *api) podObject(nodeName string, p *kube.Pod) pod {
	o := pod{
		Metadata: meta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, CreationTimestamp: a.stamp(p.Created)},
		Spec:     podSpec{NodeName: nodeName, HostNetwork: p.HostNetwork},
		Status:   podStatus{Phase: p.Phase.String()},
	}
	if p.Deleting {
		o.Metadata.DeletionTimestamp = *o.Metadata.CreationTimestamp
	}
	if p.Address.IsValid() {
		ip := p.Address.String()
		o.Status.PodIP, o.Status.PodIPs = ip, []podIP{{ip}}
		if p.HostNetwork {
			o.Status.HostIP = ip
		}
	}
	o.Metadata.ResourceVersion = digest(&o)
	return o
}

// digest stands for an object's version: it changes when the object does. The API says only that versions are compared for equality.
func digest(o *pod) string {
	h := fnv.New32a()
	b, _ := json.Marshal(o) // plain data
	_, _ = h.Write(b)
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

func format(version uint64) string { return strconv.FormatUint(version, 10) }
