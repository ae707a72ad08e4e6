package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// drained is how many pods of a Deployment are on the node that is drained. With what else is there they fit on the
// other worker.
const drained = 6

// What `kubectl drain --ignore-daemonsets` does, cordon and evictions, while a DaemonSet's pods hold connections.
var _ = specs("a node that is drained", Label("drain"), func(b *bed) {
	var namespace string
	var from, to *cluster.Node
	var stays, moves []corev1.Pod
	var gone []netip.Addr
	var flows []*flow

	BeforeAll(func(ctx SpecContext) {
		from, to = b.Workers()[0], b.Workers()[1]
		namespace = b.newNamespace(ctx, "drain")
		DeferCleanup(func(ctx SpecContext) {
			check(parallel(b.Workers(), func(n *cluster.Node) error { return b.cordon(ctx, n, false) }))
		}, NodeTimeout(time.Minute))
		got(b.Client().AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "stays"},
			Spec:       appsv1.DaemonSetSpec{Selector: selector("stays"), Template: template("stays")},
		}, metav1.CreateOptions{}))
		check(b.cordon(ctx, to, true)) // so that all of them are on the other worker
		replicas := int32(drained)
		got(b.Client().AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "moves"},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector("moves"), Template: template("moves")},
		}, metav1.CreateOptions{}))
		atATime := intstr.FromInt32(drained / 3)
		got(b.Client().PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "moves"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &atATime, Selector: selector("moves")},
		}, metav1.CreateOptions{}))
		stays = b.awaitReady(ctx, namespace, "stays", len(b.Workers()))
		moves = b.awaitReady(ctx, namespace, "moves", drained)
		for i := range moves {
			Expect(moves[i].Spec.NodeName).To(Equal(from.Name), moves[i].Name)
		}
		check(b.cordon(ctx, to, false))
		for i := range stays {
			flows = append(flows, b.openFlow(ctx, &stays[i]), b.openPodFlow(ctx, &stays[i], &stays[1-i]))
			for _, n := range b.Nodes() {
				flows = append(flows, b.openNodeFlow(ctx, n, &stays[i]))
			}
		}
		mustGoOn(ctx, flows)
	}, NodeTimeout(2*startLimit+time.Minute))

	It("gives up its pods, which come back elsewhere with addresses of their own and answer", func(ctx SpecContext) {
		check(b.cordon(ctx, from, true))
		gone = b.evictAll(ctx, from)
		say(fmt.Sprintf("%d pods were evicted: %v", len(gone), gone))
		for i := range moves {
			Expect(gone).To(ContainElement(addressOf(&moves[i])), "the addresses of evicted pods")
		}
		moves = b.awaitReady(ctx, namespace, "moves", drained)
		seen := map[string]string{}
		for _, p := range append(stays, moves...) {
			Expect(b.misplaced(&p)).To(Succeed())
			Expect(seen).NotTo(HaveKey(p.Status.PodIP), "%s's address", p.Name)
			seen[p.Status.PodIP] = p.Name
		}
		for i := range moves {
			Expect(moves[i].Spec.NodeName).NotTo(Equal(from.Name), moves[i].Name)
		}
		check(b.reach(ctx, stays, moves))
	}, NodeTimeout(startLimit+stopLimit))

	It("cuts no connection to or from a pod that stays, there and elsewhere", func(ctx SpecContext) {
		mustGoOn(ctx, flows)
		check(b.reach(ctx, stays, stays))
	}, NodeTimeout(3*time.Minute))

	It("keeps nothing of what was evicted", func(ctx SpecContext) {
		Expect(gone).NotTo(BeEmpty())
		b.awaitNothingLeft(ctx, from, gone)
	}, NodeTimeout(remainsLimit+time.Minute))

	It("takes more pods than its primary ENI has addresses for once it is uncordoned", func(ctx SpecContext) {
		check(b.cordon(ctx, from, false))
		for i := range fleetPerWorker {
			b.start(ctx, namespace, "back", fmt.Sprintf("back-%d", i), onNode(from.Name), scheduled)
		}
		back := b.awaitReady(ctx, namespace, "back", fleetPerWorker)
		for i := range back {
			Expect(b.misplaced(&back[i])).To(Succeed())
		}
		check(b.reach(ctx, stays, back))
		mustGoOn(ctx, flows)
	}, NodeTimeout(startLimit+2*time.Minute))
})

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelled(name)}
}

// template is a workload's.
func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelled(name)}, Spec: podSpec()}
}

// scheduled takes a pod's tolerations away: of a cordoned node the scheduler gives it none.
func scheduled(s *corev1.PodSpec) { s.Tolerations = nil }

// cordon does what `kubectl cordon` or `kubectl uncordon` does.
func (b *bed) cordon(ctx context.Context, n *cluster.Node, on bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on)
	nodes := b.Client().CoreV1().Nodes()
	_, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// evictAll evicts the pods of a node, but those of DaemonSets, waits until they are gone, and returns their addresses.
func (b *bed) evictAll(ctx context.Context, n *cluster.Node) []netip.Addr {
	GinkgoHelper()
	list := got(b.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name}))
	var gone []netip.Addr
	var all jobs
	for i := range list.Items {
		p := &list.Items[i]
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "DaemonSet" {
			continue
		}
		gone = append(gone, addressOf(p))
		all.add(func() error {
			what := "pod " + p.Name + " to be evicted from " + n.Name
			return awaited(ctx, stopLimit, what, func(ctx context.Context) (string, error) { return b.evict(ctx, p) })
		})
	}
	check(all.run())
	return gone
}

// evict says why a pod is still there. A budget refuses an eviction until other pods are Ready again.
func (b *bed) evict(ctx context.Context, p *corev1.Pod) (string, error) {
	now, err := b.Client().CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || now.DeletionTimestamp != nil {
		return "it is being deleted", err
	}
	this := metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}
	err = b.Client().PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: this})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return "it is evicted", err
}

// reach says which pods are out of reach of the VPC, of a node, or of one of the others.
func (b *bed) reach(ctx context.Context, from, to []corev1.Pod) error {
	var all jobs
	for i := range to {
		at := netip.AddrPortFrom(addressOf(&to[i]), httpPort)
		for _, o := range b.origins() {
			all.add(func() error { return o.expect(ctx, at, to[i].Name, o.addr) })
		}
	}
	for i := range from {
		var list []question
		for j := range to {
			list = append(list, who(netip.AddrPortFrom(addressOf(&to[j]), httpPort), to[j].Name, from[i].Status.PodIP))
		}
		all.add(func() error { return b.expect(ctx, &from[i], "ask", list...) })
	}
	return all.run()
}
