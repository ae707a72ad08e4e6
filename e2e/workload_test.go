package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Bounds on what a workload takes on a machine with better things to do.
const (
	startLimit = 4 * time.Minute
	stopLimit  = 4 * time.Minute
)

// podImage is in the nodes' image, or pulled.
const podImage = "docker.io/library/busybox:1.35"

// Ports that every pod serves: see e2e/peer.
const (
	echoPort = 7    // TCP: sends back what it gets
	httpPort = 8080 // HTTP: /who is the pod's name and the asker's address
)

// Where peer is, on the nodes and in the pods.
const (
	peerDir = "/opt/enilab-e2e"
	peer    = peerDir + "/peer"
)

// change adapts a pod's specification.
type change func(*corev1.PodSpec)

// onNode makes a pod run there: past the scheduler's taints, not past kubelet.
func onNode(name string) change {
	return func(s *corev1.PodSpec) {
		s.NodeSelector = map[string]string{"kubernetes.io/hostname": name}
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

// podSpec serves echoPort and httpPort, is Ready when it does, and ends within a second when told.
func podSpec(changes ...change) corev1.PodSpec {
	grace, dir := int64(1), corev1.HostPathDirectory
	s := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "main", Image: podImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{peer, "serve"},
			VolumeMounts: []corev1.VolumeMount{{Name: "peer", MountPath: peerDir, ReadOnly: true}},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5,
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(echoPort)}}},
		}},
		Volumes: []corev1.Volume{{Name: "peer", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: peerDir, Type: &dir}}}},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

// appLabel is what a workload's pods are found by.
const appLabel = "app"

func labelled(name string) map[string]string { return map[string]string{appLabel: name} }

// newNamespace makes a namespace for the container or spec that calls it, at whose end its pods are gone.
func (b *bed) newNamespace(ctx context.Context, name string) string {
	GinkgoHelper()
	ns, err := b.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	check(err)
	name = ns.Name
	DeferCleanup(func(ctx SpecContext) {
		check(b.Client().CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
		b.awaitGone(ctx, name, "")
	}, NodeTimeout(stopLimit+time.Minute))
	check(b.accountReady(ctx, name))
	return name
}

// accountReady waits until a new namespace has what every pod needs: its default ServiceAccount.
func (b *bed) accountReady(ctx context.Context, namespace string) error {
	return awaited(ctx, startLimit, "the default ServiceAccount of namespace "+namespace, func(ctx context.Context) (string, error) {
		_, err := b.Client().CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return "", err
	})
}

// start makes a pod that belongs to a workload of that label, and returns at once.
func (b *bed) start(ctx context.Context, namespace, label, name string, changes ...change) {
	GinkgoHelper()
	got(b.Client().CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(label)}, Spec: podSpec(changes...),
	}, metav1.CreateOptions{}))
}

// pods are those with that name as their label, or all of the namespace.
func (b *bed) pods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	o := metav1.ListOptions{}
	if name != "" {
		o.LabelSelector = appLabel + "=" + name
	}
	list, err := b.Client().CoreV1().Pods(namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitReady waits until there are so many pods with that label, all of them Ready, and returns them.
func (b *bed) awaitReady(ctx context.Context, namespace, name string, count int) []corev1.Pod {
	GinkgoHelper()
	return b.awaitReadyWithin(ctx, startLimit, namespace, name, count)
}

func (b *bed) awaitReadyWithin(ctx context.Context, limit time.Duration, namespace, name string, count int) (out []corev1.Pod) {
	GinkgoHelper()
	what := fmt.Sprintf("%d pods %s/%s to be Ready", count, namespace, name)
	await(ctx, limit, what, func(ctx context.Context) (string, error) {
		pods, err := b.pods(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		out = pods
		for i := range pods {
			if !ready(&pods[i]) || pods[i].DeletionTimestamp != nil {
				return describePods(pods), nil
			}
		}
		if len(pods) != count {
			return describePods(pods), nil
		}
		return "", nil
	})
	return out
}

// awaitGone waits until no pod has that label, or until the namespace has none.
func (b *bed) awaitGone(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	b.awaitGoneWithin(ctx, stopLimit, namespace, name)
}

func (b *bed) awaitGoneWithin(ctx context.Context, limit time.Duration, namespace, name string) {
	GinkgoHelper()
	what := fmt.Sprintf("the pods %s/%s to be gone", namespace, name)
	await(ctx, limit, what, func(ctx context.Context) (string, error) {
		pods, err := b.pods(ctx, namespace, name)
		if err != nil || len(pods) == 0 {
			return "", err
		}
		return describePods(pods), nil
	})
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describePods says why pods are not as they should be: those that are Ready are only counted.
func describePods(pods []corev1.Pod) string {
	good := 0
	var out []string
	for i := range pods {
		p := &pods[i]
		switch {
		case p.DeletionTimestamp != nil:
			out = append(out, fmt.Sprintf("%s on %s is being deleted", p.Name, p.Spec.NodeName))
		case ready(p):
			good++
		default:
			out = append(out, fmt.Sprintf("%s on %s is %s", p.Name, p.Spec.NodeName, state(p)))
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("%d of %d pods are Ready", good, len(pods))}, out...), ", ")
}

// state is a pod's phase, or what its container waits for.
func state(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			return strings.TrimSpace(c.State.Waiting.Reason + " " + c.State.Waiting.Message)
		}
	}
	return string(p.Status.Phase)
}

// addressOf is a pod's.
func addressOf(p *corev1.Pod) netip.Addr {
	GinkgoHelper()
	a, err := netip.ParseAddr(p.Status.PodIP)
	check(err, "the address of pod "+p.Name)
	return a
}
