package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// rollSpecs: aws-node is replaced while pods talk.
func rollSpecs(f *fleet) {
	Context("whose connections are in use", Label("roll"), func() {
		var flows []*flow
		BeforeAll(func(ctx SpecContext) {
			f.reinstall()
			f.awaitServices(ctx)
			flows = f.openFlows(ctx)
			mustGoOn(ctx, flows)
		}, NodeTimeout(3*time.Minute))

		AfterEach(func(ctx SpecContext) {
			mustGoOn(ctx, flows)
			slowest := slices.MaxFunc(flows, func(a, b *flow) int { return int(a.slowest() - b.slowest()) })
			say(fmt.Sprintf("%d flows go on; the longest wait was %s's, %v", len(flows), slowest.name, slowest.slowest().Round(time.Millisecond)))
		}, NodeTimeout(3*time.Minute))

		It("keeps them during a restart of aws-node", func(ctx SpecContext) {
			check(f.restartDaemons(ctx))
		}, NodeTimeout(rollLimit))

		It("keeps them when their addresses shall be seen outside of the VPC and fewer shall be warm", func(ctx SpecContext) {
			check(f.install(ctx, map[string]string{"AWS_VPC_K8S_CNI_EXTERNALSNAT": "true", "WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1"}))
			check(f.expectOutside(ctx, func(p *corev1.Pod) string { return p.Status.PodIP }))
			await(ctx, startLimit, "each worker to have one address more than pods", func(ctx context.Context) (string, error) {
				return f.surplus(ctx, 1)
			})
		}, NodeTimeout(rollLimit+startLimit))

		It("keeps them when only one place outside shall see them", func(ctx SpecContext) {
			to := netip.PrefixFrom(f.Network().InternetAddr().Addr(), 24).Masked().String()
			check(f.install(ctx, map[string]string{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": to}))
			check(f.expectOutside(ctx, func(p *corev1.Pod) string { return p.Status.PodIP }))
		}, NodeTimeout(rollLimit))

		It("keeps them when that is taken back", func(ctx SpecContext) {
			check(f.install(ctx, nil))
			check(f.expectOutside(ctx, func(p *corev1.Pod) string { return f.Node(p.Spec.NodeName).Address.String() }))
		}, NodeTimeout(rollLimit))
	})
}

// heldFlows is how many connections are in use while aws-node is replaced.
const heldFlows = 40

// openFlows opens two to each pod, from the VPC and from the pod's node, one to one of each kind by its Service's port on a node, and between
// pods of all kinds.
func (f *fleet) openFlows(ctx context.Context) []*flow {
	GinkgoHelper()
	var out []*flow
	for i := range f.pods {
		p := &f.pods[i]
		out = append(out, f.openFlow(ctx, p), f.openNodeFlow(ctx, f.Node(p.Spec.NodeName), p))
	}
	for _, r := range roles {
		conn := got(f.Network().Dial(ctx, nodePort(f.local[r], f.worker(r), echoPort)))
		out = append(out, follow("VPC -> NodePort of "+r, conn, func() { _ = conn.Close() }))
	}
	for i, from := range f.members() {
		for _, step := range []int{1, 2} {
			out = append(out, f.openPodFlow(ctx, from, f.members()[(i+step)%len(roles)]))
		}
	}
	Expect(out).To(HaveLen(heldFlows))
	return out
}

// restartDaemons does what `kubectl rollout restart` does.
func (b *bed) restartDaemons(ctx context.Context) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
	_, err := b.Client().AppsV1().DaemonSets("kube-system").Patch(ctx, "aws-node", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return b.RolledOut(ctx)
}

// surplus says which worker has not exactly so many addresses for pods more than it has pods.
func (f *fleet) surplus(ctx context.Context, expected int) (string, error) {
	all, err := f.bed.pods(ctx, "", "")
	if err != nil {
		return "", err
	}
	for _, n := range f.Workers() {
		used := 0
		for i := range all {
			if p := &all[i]; p.Spec.NodeName == n.Name && !p.Spec.HostNetwork {
				used++
			}
		}
		if have := f.capacity(n); have != used+expected {
			return fmt.Sprintf("%s has %d addresses for %d pods", n.Name, have, used), nil
		}
	}
	return "", nil
}

// capacity is how many addresses for pods EC2 has given to a node.
func (b *bed) capacity(n *cluster.Node) int {
	count := 0
	b.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		for _, id := range m.AttachedENIs(n.Instance) {
			if e, ok := m.ENI(id); ok {
				count += len(e.Secondaries)
			}
		}
	})
	return count
}
