package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/sim/vpc"
)

// What the daemon may: NET_ADMIN (12) and NET_RAW (13), see capabilities(7).
const daemonCapabilities = "0000000000003000"

var _ = specs("a cluster", Label("datapath"), func(b *bed) {
	It("has nodes that are Ready, and a daemon on each whose probes pass", func(ctx SpecContext) {
		check(b.Ready(ctx))
		pods := got(b.daemons(ctx))
		Expect(pods).To(HaveLen(len(b.Nodes())))
		for _, p := range pods {
			Expect(ready(&p)).To(BeTrue(), p.Name+" is Ready")
			for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
				Expect(s.RestartCount).To(BeZero(), "restarts of %s in %s on %s", s.Name, p.Name, p.Spec.NodeName)
			}
		}
	}, NodeTimeout(time.Minute))

	It("runs the daemon with NET_ADMIN and NET_RAW and nothing else", func() {
		for _, n := range b.Nodes() {
			p := got(daemonProcess(n))
			text := got(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid)))
			status := map[string]string{}
			for _, line := range strings.Split(string(text), "\n") {
				k, v, _ := strings.Cut(line, ":")
				status[k] = strings.TrimSpace(v)
			}
			for k, v := range map[string]string{"CapInh": "0000000000000000", "CapPrm": daemonCapabilities, "CapEff": daemonCapabilities,
				"CapBnd": daemonCapabilities, "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
				Expect(status).To(HaveKeyWithValue(k, v), "ipamd on %s", n.Name)
			}
		}
	})

	It("has nodes that say what EKS's say: the provider's ID, the zone, the region and the type", func(ctx SpecContext) {
		for _, n := range b.Nodes() {
			node := got(b.Client().CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{}))
			Expect(node.Spec.ProviderID).To(Equal("aws:///us-west-2a/" + string(n.Instance)))
			for _, l := range [][2]string{{"topology.kubernetes.io/zone", "us-west-2a"}, {"topology.kubernetes.io/region", "us-west-2"},
				{"node.kubernetes.io/instance-type", "t3.medium"}} {
				Expect(node.Labels).To(HaveKeyWithValue(l[0], l[1]), n.Name)
			}
		}
	}, NodeTimeout(time.Minute))

	It("leaves port 80 of a node to pods of its network, and answers for the metadata beside them", func() {
		for _, n := range b.Nodes() {
			var l net.Listener
			var answer *http.Response
			check(vpc.Do(n.Netns(), func() (err error) {
				if l, err = net.Listen("tcp", "0.0.0.0:80"); err != nil {
					return err
				}
				request, err := http.NewRequest(http.MethodPut, "http://169.254.169.254/latest/api/token", nil)
				if err != nil {
					return err
				}
				request.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
				c, err := net.Dial("tcp", request.URL.Host+":80")
				if err != nil {
					return err
				}
				defer c.Close()
				if err := request.Write(c); err != nil {
					return err
				}
				answer, err = http.ReadResponse(bufio.NewReader(c), request)
				return err
			}), n.Name)
			Expect(answer.StatusCode).To(Equal(http.StatusOK), n.Name)
			check(l.Close())
		}
	})

	It("has CoreDNS on addresses of ENIs", func(ctx SpecContext) {
		pods := got(b.Client().CoreV1().Pods("kube-system").List(ctx, listOf("k8s-app=kube-dns")))
		Expect(pods.Items).NotTo(BeEmpty())
		for _, p := range pods.Items {
			Expect(b.misplaced(&p)).To(Succeed())
			Expect(ready(&p)).To(BeTrue(), p.Name+" is Ready")
		}
	}, NodeTimeout(time.Minute))

	It("has a conflist that the daemon wrote", func() {
		for _, n := range b.Nodes() {
			list := got(filepath.Glob(filepath.Join(n.Root(), "etc/cni/net.d/*")))
			Expect(list).To(Equal([]string{filepath.Join(n.Root(), "etc/cni/net.d/10-aws.conflist")}))
		}
	})
})

// misplaced says why a pod's address is none that EC2 has given to its node for pods.
func (b *bed) misplaced(p *corev1.Pod) error {
	a := addressOf(p)
	n, e, err := b.holder(a)
	switch {
	case err != nil:
		return fmt.Errorf("pod %s: %w", p.Name, err)
	case n.Name != p.Spec.NodeName:
		return fmt.Errorf("pod %s on %s has %v, which is %s's", p.Name, p.Spec.NodeName, a, n.Name)
	case e.Primary == a:
		return fmt.Errorf("pod %s has %v, which is the own address of %s, device %d of %s", p.Name, a, e.ID, e.DeviceIndex, n.Name)
	}
	return nil
}
