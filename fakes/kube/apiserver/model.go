package apiserver

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/fakes/kube/server"
)

// defaultMaxPods is kubelet's.
const defaultMaxPods = 110

// NodeOf is a node of the model as the API shows it, with the labels that kubelet and the cloud provider give. epoch is the wall clock's time
// at the model's instant 0.
func NodeOf(name string, v server.NodeInfo, epoch time.Time) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(v.UID), CreationTimestamp: metav1.NewTime(epoch.UTC()),
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
			},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: Version},
		},
	}
	if v.NotReady {
		n.Status.Conditions[1].Status, n.Status.Conditions[1].Reason = corev1.ConditionFalse, "KubeletNotReady"
	}
	label := func(value string, keys ...string) {
		for _, k := range keys {
			if value != "" {
				n.Labels[k] = value
			}
		}
	}
	label(v.Type, corev1.LabelInstanceTypeStable, corev1.LabelInstanceType)
	label(v.Zone, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone)
	if v.Zone != "" { // a region and a letter
		label(v.Zone[:len(v.Zone)-1], corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion)
	}
	if v.Cordoned {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	if v.Instance != "" {
		n.Spec.ProviderID = "aws:///" + v.Zone + "/" + v.Instance
	}
	pods := quantity.MustParse(strconv.Itoa(cmp.Or(v.MaxPods, defaultMaxPods)))
	n.Status.Capacity = corev1.ResourceList{corev1.ResourcePods: pods}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: pods}
	if v.Address.IsValid() {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: v.Address.String()})
	}
	return n
}

// PodOf is a pod of the model as the API shows it: node is the name of the node that it is bound to, "" for none, host that node's address.
func PodOf(p *kube.Pod, kind kube.Kind, node string, host netip.Addr, epoch time.Time) *corev1.Pod {
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: types.UID(p.UID), CreationTimestamp: instant(epoch, p.Created),
			Labels: map[string]string{"app": p.Workload}, OwnerReferences: []metav1.OwnerReference{owner(p, kind)}},
		Spec: corev1.PodSpec{NodeName: node, HostNetwork: p.HostNetwork, RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "default",
			Containers: []corev1.Container{{Name: "main", Image: p.Workload}}},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(p.Phase.String()), ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: p.Workload}}},
	}
	switch kind {
	case kube.StatefulSet:
		o.GenerateName = p.Workload + "-"
		o.Labels["statefulset.kubernetes.io/pod-name"] = p.Name
	default:
		o.GenerateName = owner(p, kind).Name + "-"
	}
	ready := corev1.ConditionFalse
	switch running := &o.Status.ContainerStatuses[0]; {
	case p.Phase == kube.Running:
		ready, running.Ready, running.Started = corev1.ConditionTrue, true, new(true)
		running.State.Running = &corev1.ContainerStateRunning{StartedAt: o.CreationTimestamp}
	default:
		running.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if node != "" {
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	}
	if p.Deleting { // the timestamp says when the grace ends
		at, seconds := instant(epoch, p.Deleted+p.Grace), int64(p.Grace/time.Second)
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &at, &seconds
	}
	if host.IsValid() && node != "" {
		o.Status.HostIP, o.Status.HostIPs = host.String(), []corev1.HostIP{{IP: host.String()}}
	}
	if p.Address.IsValid() {
		o.Status.PodIP, o.Status.PodIPs = p.Address.String(), []corev1.PodIP{{IP: p.Address.String()}}
	}
	return o
}

// ENIConfigOf is an ENIConfig of the model as the API shows it.
func ENIConfigOf(e *kube.ENIConfig) *unstructured.Unstructured {
	spec := map[string]any{"subnet": e.Subnet}
	for _, g := range e.Groups {
		list, _ := spec["securityGroups"].([]any)
		spec["securityGroups"] = append(list, g)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig",
		"metadata": map[string]any{"name": e.Name}, "spec": spec}}
}

// instant is one of the model's as the API writes it: to the second.
func instant(epoch time.Time, at time.Duration) metav1.Time {
	return metav1.NewTime(epoch.Add(at).UTC().Truncate(time.Second))
}

// owner is the controller of a pod: the StatefulSet, or the one ReplicaSet that a Deployment has here.
func owner(p *kube.Pod, kind kube.Kind) metav1.OwnerReference {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Namespace + "/" + p.Workload))
	sum := h.Sum32()
	r := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: p.Workload, Controller: new(true), BlockOwnerDeletion: new(true)}
	if kind == kube.Deployment {
		r.Kind, r.Name = "ReplicaSet", p.Workload+"-"+strings.ToLower(strconv.FormatUint(uint64(sum), 36))
	}
	r.UID = types.UID("00000000-0000-4000-8000-0000" + strings.Repeat("0", 8-len(strconv.FormatUint(uint64(sum), 16))) + strconv.FormatUint(uint64(sum), 16))
	return r
}
