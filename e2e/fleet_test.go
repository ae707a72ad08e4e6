package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// fleet is the pods that the specs of the datapath share: on each worker more than its primary ENI has addresses for.
type fleet struct {
	*bed
	namespace string
	pods      []corev1.Pod
	role      map[string]*corev1.Pod     // one pod on each worker and kind of ENI
	own       map[string]netip.Addr      // by pod: its ENI's own address
	service   map[string]*corev1.Service // NodePort, of each role's pod
	local     map[string]*corev1.Service // the same with externalTrafficPolicy Local
	all       *corev1.Service            // of all pods
}

// roles: a is the first worker, b the second.
var roles = []string{"a-primary", "a-secondary", "b-primary", "b-secondary"}

// A t3.medium's primary ENI has 5 addresses for pods.
const fleetPerWorker = 7

// firstHostPort is that of b-0, see start. The API server gives a Service any port of 30000 to 32767, and kube-proxy takes what comes to it
// before portmap does; the kernel's own ports begin at 32768.
const firstHostPort = 28800

// worker is the Node of a role or a pod of the fleet.
func (f *fleet) worker(name string) *cluster.Node {
	if strings.HasPrefix(name, "a-") {
		return f.Workers()[0]
	}
	return f.Workers()[1]
}

// start makes the pods and the Services. Pods on the second worker have a port of their node each.
func (f *fleet) start(ctx SpecContext) {
	f.namespace = f.newNamespace(ctx, "datapath")
	for i := range fleetPerWorker {
		for _, letter := range []string{"a", "b"} {
			name := fmt.Sprintf("%s-%d", letter, i)
			changes := []change{onNode(f.worker(name).Name), probed, withKubectl}
			if letter == "b" {
				changes = append(changes, withHostPort(firstHostPort+int32(i)))
			}
			f.bed.start(ctx, f.namespace, "fleet", name, changes...)
		}
	}
	f.pods = f.awaitReady(ctx, f.namespace, "fleet", 2*fleetPerWorker)
	f.assignRoles(ctx)
	f.serve(ctx)
}

// members are the roles' pods.
func (f *fleet) members() []*corev1.Pod {
	var out []*corev1.Pod
	for _, r := range roles {
		out = append(out, f.role[r])
	}
	return out
}

// pod is the one with that name, nil if there is none.
func (f *fleet) pod(name string) *corev1.Pod {
	for i := range f.pods {
		if f.pods[i].Name == name {
			return &f.pods[i]
		}
	}
	return nil
}

// on are the pods on a node.
func (f *fleet) on(n *cluster.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range f.pods {
		if f.pods[i].Spec.NodeName == n.Name {
			out = append(out, &f.pods[i])
		}
	}
	return out
}

// hostPort is the port of the node that leads to a pod of the second worker.
func hostPort(p *corev1.Pod) uint16 { return uint16(p.Spec.Containers[0].Ports[0].HostPort) }

func withHostPort(port int32) change {
	return func(s *corev1.PodSpec) {
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: httpPort, HostPort: port}}
	}
}

// withKubectl gives a pod the node's own kubectl, as a client of the API server.
func withKubectl(s *corev1.PodSpec) {
	file := corev1.HostPathFile
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "kubectl",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/usr/bin/kubectl", Type: &file}}})
	s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "kubectl", MountPath: "/bin/kubectl", ReadOnly: true})
}

// probed gives a pod all kinds of probes.
func probed(s *corev1.PodSpec) {
	c := &s.Containers[0]
	c.StartupProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 60,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-x", peer}}}}
	c.LivenessProbe = &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 10, FailureThreshold: 6,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(echoPort)}}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(httpPort), Path: "/ready"}}}
}

// assignRoles finds a pod for each role, by EC2's word on the addresses.
func (f *fleet) assignRoles(ctx context.Context) {
	GinkgoHelper()
	f.role, f.own = map[string]*corev1.Pod{}, map[string]netip.Addr{}
	var where []string
	for i := range f.pods {
		p := &f.pods[i]
		n, e, err := f.holder(addressOf(p))
		check(err)
		where = append(where, fmt.Sprintf("%s %s on %s's device %d", p.Name, p.Status.PodIP, n.Name, e.DeviceIndex))
		role := p.Name[:1] + "-primary"
		if e.DeviceIndex > 0 {
			role = p.Name[:1] + "-secondary"
		}
		f.role[role], f.own[p.Name] = p, e.Primary
	}
	say(strings.Join(where, "\n         "))
	for _, r := range roles {
		p := f.role[r]
		if p == nil {
			Fail("no pod is there for the role " + r + ": " + strings.Join(where, ", "))
		}
		patch := got(json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"role": r}}}))
		got(f.Client().CoreV1().Pods(f.namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
	}
}

// serve makes the Services.
func (f *fleet) serve(ctx context.Context) {
	GinkgoHelper()
	f.service, f.local = map[string]*corev1.Service{}, map[string]*corev1.Service{}
	for _, r := range roles {
		f.service[r] = f.serviceOf(ctx, r, map[string]string{"role": r}, corev1.ServiceExternalTrafficPolicyCluster)
		f.local[r] = f.serviceOf(ctx, r+"-local", map[string]string{"role": r}, corev1.ServiceExternalTrafficPolicyLocal)
	}
	f.all = f.serviceOf(ctx, "all", labelled("fleet"), corev1.ServiceExternalTrafficPolicyCluster)
}

func (f *fleet) serviceOf(ctx context.Context, name string, selector map[string]string, policy corev1.ServiceExternalTrafficPolicy) *corev1.Service {
	GinkgoHelper()
	s := got(f.Client().CoreV1().Services(f.namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: selector, ExternalTrafficPolicy: policy,
			Ports: []corev1.ServicePort{{Name: "http", Port: httpPort}, {Name: "echo", Port: echoPort}}},
	}, metav1.CreateOptions{}))
	return s
}

// nodePort is where a Service's httpPort or echoPort is on a node.
func nodePort(s *corev1.Service, n *cluster.Node, port int32) netip.AddrPort {
	for _, p := range s.Spec.Ports {
		if p.Port == port {
			return netip.AddrPortFrom(n.Address, uint16(p.NodePort))
		}
	}
	return netip.AddrPort{}
}

func clusterIP(s *corev1.Service) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIP), httpPort)
}

var _ = specs("the datapath", Label("datapath"), func(b *bed) {
	f := &fleet{bed: b}
	BeforeAll(f.start, NodeTimeout(startLimit+time.Minute))
	podSpecs(f)
	serviceSpecs(f)
	kubeletSpecs(f)
	externalSpecs(f)
	if b.first {
		rollSpecs(f)
	}
})
