package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// serviceSpecs: Services are kube-proxy's, whose translations meet the CNI's marks and rules.
func serviceSpecs(f *fleet) {
	BeforeAll(f.awaitServices, NodeTimeout(startLimit))

	It("carries from pods to the ClusterIPs of others, and to their own", func(ctx SpecContext) {
		check(parallel(f.members(), func(from *corev1.Pod) error {
			var list []question
			for _, r := range roles {
				p := f.role[r]
				peer := from.Status.PodIP
				if p == from { // kube-proxy masquerades it
					peer = f.Node(p.Spec.NodeName).Address.String()
				}
				list = append(list, who(clusterIP(f.service[r]), p.Name, peer))
			}
			return f.expect(ctx, from, "ask", list...)
		}))
	}, NodeTimeout(3*time.Minute))

	It("carries from pods to all endpoints of a Service", func(ctx SpecContext) {
		check(parallel(f.members(), func(from *corev1.Pod) error {
			command := []string{peer, "ask"}
			for range 3 * len(f.pods) {
				command = append(command, clusterIP(f.all).String())
			}
			found, err := f.answers(ctx, from, command...)
			if err != nil {
				return err
			}
			servers := map[string]int{}
			for _, a := range found {
				name, _, _ := strings.Cut(a, " ")
				servers[name]++
			}
			for name := range servers {
				if f.pod(name) == nil {
					return fmt.Errorf("%s asks the Service of %d pods: found %q", from.Name, len(f.pods), found)
				}
			}
			if len(servers) < len(f.pods)/2 {
				return fmt.Errorf("%s asks the Service of %d pods %d times: expected answers of most of them, found %v", from.Name, len(f.pods), len(found), servers)
			}
			return nil
		}))
	}, NodeTimeout(3*time.Minute))

	It("carries from nodes to ClusterIPs", func(ctx SpecContext) {
		var all jobs
		for _, n := range f.Nodes() {
			for _, r := range roles {
				all.add(func() error {
					return host(n).expect(ctx, clusterIP(f.service[r]), f.role[r].Name, n.Address.String())
				})
			}
		}
		check(all.run())
	}, NodeTimeout(3*time.Minute))

	It("carries from the VPC and from nodes to NodePorts on every node", func(ctx SpecContext) {
		payload := make([]byte, payloadSize)
		var all jobs
		for _, o := range f.origins() {
			for _, r := range roles {
				for _, n := range f.Nodes() { // which masquerades
					all.add(func() error {
						return o.expect(ctx, nodePort(f.service[r], n, httpPort), f.role[r].Name, n.Address.String())
					})
					all.add(func() error { return o.echo(ctx, nodePort(f.service[r], n, echoPort), payload) })
				}
			}
		}
		check(all.run())
	}, NodeTimeout(3*time.Minute))

	It("carries from the VPC to NodePorts that keep the client's address", func(ctx SpecContext) {
		payload := make([]byte, payloadSize)
		var all jobs
		for _, r := range roles {
			n, o := f.worker(r), f.witness()
			all.add(func() error {
				return o.expect(ctx, nodePort(f.local[r], n, httpPort), f.role[r].Name, o.addr)
			})
			all.add(func() error { return o.echo(ctx, nodePort(f.local[r], n, echoPort), payload) })
		}
		check(all.run())
	}, NodeTimeout(3*time.Minute))

	It("carries from pods to NodePorts on every node", func(ctx SpecContext) {
		check(parallel(f.members(), func(from *corev1.Pod) error {
			var list []question
			for _, r := range roles {
				for _, n := range f.Nodes() {
					list = append(list, who(nodePort(f.service[r], n, httpPort), f.role[r].Name, f.masked(from, f.role[r], n)))
				}
			}
			return f.expect(ctx, from, "ask", list...)
		}))
	}, NodeTimeout(3*time.Minute))

	It("resolves names for pods", func(ctx SpecContext) {
		dns := got(f.Client().CoreV1().Pods("kube-system").List(ctx, listOf("k8s-app=kube-dns")))
		Expect(dns.Items).NotTo(BeEmpty())
		list := []question{
			{"all", f.all.Spec.ClusterIP},
			{fmt.Sprintf("a-primary.%s.svc.cluster.local.", f.namespace), f.service["a-primary"].Spec.ClusterIP},
		}
		for _, p := range dns.Items {
			list = append(list, question{fmt.Sprintf("all.%s.svc.cluster.local.@%s", f.namespace, p.Status.PodIP), f.all.Spec.ClusterIP})
		}
		check(parallel(pointers(f.pods), func(p *corev1.Pod) error { return f.expect(ctx, p, "lookup", list...) }))
	}, NodeTimeout(3*time.Minute))

	It("lets pods talk to the API server", func(ctx SpecContext) {
		me := fmt.Sprintf("system:serviceaccount:%s:default", f.namespace)
		check(parallel(f.members(), func(p *corev1.Pod) error {
			out, err := f.run(ctx, p, "timeout", "60", "kubectl", "auth", "whoami")
			if err == nil && !strings.Contains(out, me) {
				err = fmt.Errorf("%s asks the API server who it is: expected %s, found %s", p.Name, me, out)
			}
			return err
		}))
	}, NodeTimeout(3*time.Minute))
}

// masked is who a pod sees when another one asks the NodePort of a node: kube-proxy masquerades as the link that the way on goes by, and what
// comes from a pod of that node itself goes on by the pod's ENI.
func (f *fleet) masked(from, to *corev1.Pod, n *cluster.Node) string {
	if from.Spec.NodeName == n.Name && to.Spec.NodeName != n.Name {
		return f.own[from.Name].String()
	}
	return n.Address.String()
}

// awaitServices waits until kube-proxy on each node leads to the Services' pods: it says so in its rules, whatever becomes of packets.
func (f *fleet) awaitServices(ctx SpecContext) {
	for _, n := range f.Nodes() {
		await(ctx, startLimit, "kube-proxy on "+n.Name+" to know the Services", func(ctx context.Context) (string, error) {
			rules, err := n.Exec(ctx, "sh", "-c", "iptables-save -t nat; nft list map ip kube-proxy service-ips 2>/dev/null || true")
			if err != nil {
				return "", err
			}
			for _, s := range append(append([]*corev1.Service{f.all}, values(f.service)...), values(f.local)...) {
				for _, p := range s.Spec.Ports {
					known := fmt.Sprintf(`(?m)-d %s/32 .* --dport %d -j KUBE-SVC-|%[1]s \. tcp \. %[2]d : goto service-`, s.Spec.ClusterIP, p.Port)
					if !regexp.MustCompile(known).MatchString(rules) {
						return fmt.Sprintf("there is no rule for port %d of %s, %s", p.Port, s.Name, s.Spec.ClusterIP), nil
					}
				}
			}
			return "", nil
		})
	}
}

func values(m map[string]*corev1.Service) []*corev1.Service {
	var out []*corev1.Service
	for _, r := range roles {
		out = append(out, m[r])
	}
	return out
}

func listOf(selector string) metav1.ListOptions { return metav1.ListOptions{LabelSelector: selector} }

// daemons are aws-node's pods.
func (b *bed) daemons(ctx context.Context) ([]corev1.Pod, error) {
	list, err := b.Client().CoreV1().Pods("kube-system").List(ctx, listOf("k8s-app=aws-node"))
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
