package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// manyPods come and go at once. Two workers of the type m5.4xlarge (8 ENIs with 30 addresses) carry 110 each, by
// kubelet's own limit.
const manyPods = 200

// manyLimit bounds how long so many may take, on two cores, to be Ready or gone.
const manyLimit = 10 * time.Minute

// idleImage is what a sandbox runs, so each node has it: a program that waits.
const idleImage = "registry.k8s.io/pause:3.10.1"

// describeMany has a cluster of its own.
func (s *site) describeMany() {
	Describe(fmt.Sprintf("%d pods at once", manyPods), Ordered, ContinueOnFailure, Label("many", long), func() {
		b := &bed{site: s, config: cluster.Config{Workers: 2, Type: "m5.4xlarge", MaxPods: 110}}
		var namespace string
		var addrs []netip.Addr
		BeforeAll(b.up, NodeTimeout(upLimit), GracePeriod(downLimit))
		BeforeAll(func(ctx SpecContext) { namespace = b.newNamespace(ctx, "many") }, NodeTimeout(startLimit))
		JustAfterEach(b.keepEvidence, NodeTimeout(evidenceLimit))

		It("all get addresses of their own, and answer", func(ctx SpecContext) {
			var all jobs
			for i := range manyPods {
				name, on := fmt.Sprintf("many-%d", i), b.Workers()[i%len(b.Workers())]
				all.add(func() error { return b.startIdle(ctx, namespace, name, onNode(on.Name)) })
			}
			began := time.Now()
			check(all.run())
			pods := b.awaitReadyWithin(ctx, manyLimit, namespace, "many", manyPods)
			say(fmt.Sprintf("%d pods were Ready after %v", len(pods), time.Since(began).Round(time.Second)))
			seen := map[string]string{}
			for i := range pods {
				p := &pods[i]
				Expect(b.misplaced(p)).To(Succeed())
				Expect(seen).NotTo(HaveKey(p.Status.PodIP), "%s's address", p.Name)
				seen[p.Status.PodIP] = p.Name
				addrs = append(addrs, addressOf(p))
			}
			Expect(b.Network().Ping(addrs, dialLimit)).To(HaveEach(true), "from the VPC to %v", addrs)
			for _, n := range b.Nodes() {
				answered := got(b.Network().PingFrom(n.Netns(), addrs, dialLimit))
				Expect(answered).To(HaveEach(true), "from %s to %v", n.Name, addrs)
			}
		}, NodeTimeout(manyLimit+2*time.Minute), PollProgressAfter(manyLimit))

		It("all go, and nothing of them is left", func(ctx SpecContext) {
			Expect(addrs).NotTo(BeEmpty())
			began := time.Now()
			pods := b.Client().CoreV1().Pods(namespace)
			check(pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
			b.awaitGoneWithin(ctx, manyLimit, namespace, "")
			say(fmt.Sprintf("they were gone after %v", time.Since(began).Round(time.Second)))
			for _, n := range b.Workers() {
				b.awaitNothingLeft(ctx, n, addrs)
			}
		}, NodeTimeout(manyLimit+2*remainsLimit), PollProgressAfter(manyLimit))
	})
}

// startIdle makes a pod that does nothing, without probes: it is Ready when it runs.
func (b *bed) startIdle(ctx context.Context, namespace, name string, changes ...change) error {
	idle := func(s *corev1.PodSpec) {
		c := &s.Containers[0]
		c.Image, c.Command, c.VolumeMounts, c.ReadinessProbe, s.Volumes = idleImage, nil, nil, nil, nil
	}
	_, err := b.Client().CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled("many")}, Spec: podSpec(append(changes, idle)...),
	}, metav1.CreateOptions{})
	return err
}
