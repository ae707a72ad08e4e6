package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
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

// Ports that every pod serves.
const (
	echoPort = 7    // TCP: sends back what it gets
	httpPort = 8080 // HTTP: /cgi-bin/who is the pod's name and the asker's address
)

// serveScript is what a pod does: it serves its ports until it is told to end. The command `ask HOST PORT` asks another pod's httpPort.
// There are two kinds of nc, with a flag each for a server that serves more than once.
const serveScript = `trap exit TERM
mkdir -p /www/cgi-bin && hostname >/www/index.html && touch /www/ready
cat >/www/cgi-bin/who <<'X'
#!/bin/sh
a=${REMOTE_ADDR#[}; a=${a%]}
printf '\r\n%s %s\n' "$(hostname)" "${a#::ffff:}"
X
cat >/bin/ask <<'X'
#!/bin/sh
printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | timeout 30 nc -w 10 "$1" "$2" | tail -1
X
chmod +x /www/cgi-bin/who /bin/ask
httpd -p 8080 -h /www
(nc -lk -p 7 -e cat || nc -ll -p 7 -e cat) 2>/dev/null &
while :; do sleep 3600 & wait $!; done`

// change adapts a pod's specification.
type change func(*corev1.PodSpec)

// onNode makes a pod run there: past the scheduler's taints, not past kubelet.
func onNode(name string) change {
	return func(s *corev1.PodSpec) {
		s.NodeSelector = map[string]string{"kubernetes.io/hostname": name}
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

// hostNetwork makes a pod run in its node's network namespace, without the ports.
func hostNetwork(s *corev1.PodSpec) {
	s.HostNetwork = true
	s.Containers[0].Command = []string{"sh", "-c", "trap exit TERM; sleep infinity & wait $!"}
	s.Containers[0].ReadinessProbe = nil
}

// podSpec serves echoPort and httpPort, is Ready when it does, and ends within a second when told.
func podSpec(changes ...change) corev1.PodSpec {
	grace := int64(1)
	s := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "main", Image: podImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", serveScript},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5,
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(echoPort)}}},
		}},
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
	await(ctx, startLimit, "the default ServiceAccount of namespace "+name, func(ctx context.Context) (string, error) {
		_, err := b.Client().CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return "", err
	})
	return name
}

// deploy makes a Deployment, and returns at once.
func (b *bed) deploy(ctx context.Context, namespace, name string, replicas int32, changes ...change) {
	GinkgoHelper()
	_, err := b.Client().AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(name)},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			Template: podTemplate(name, changes...)},
	}, metav1.CreateOptions{})
	check(err)
}

// deployStateful makes a StatefulSet whose pods all start at once, and returns at once.
func (b *bed) deployStateful(ctx context.Context, namespace, name string, replicas int32, changes ...change) {
	GinkgoHelper()
	_, err := b.Client().AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(name)},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			PodManagementPolicy: appsv1.ParallelPodManagement, Template: podTemplate(name, changes...)},
	}, metav1.CreateOptions{})
	check(err)
}

func podTemplate(name string, changes ...change) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelled(name)}, Spec: podSpec(changes...)}
}

// start makes a pod that belongs to a workload of that label, and returns at once.
func (b *bed) start(ctx context.Context, namespace, label, name string, changes ...change) {
	GinkgoHelper()
	_, err := b.Client().CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(label)}, Spec: podSpec(changes...),
	}, metav1.CreateOptions{})
	check(err)
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
	var out []corev1.Pod
	await(ctx, startLimit, fmt.Sprintf("%d pods %s/%s to be Ready", count, namespace, name), func(ctx context.Context) (string, error) {
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
	await(ctx, stopLimit, fmt.Sprintf("the pods %s/%s to be gone", namespace, name), func(ctx context.Context) (string, error) {
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
