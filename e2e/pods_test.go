package e2e

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// payloadSize in bytes is many packets, whatever the MTU.
const payloadSize = 200_000

// podSpecs: what pods do with each other, their nodes and the VPC.
func podSpecs(f *fleet) {
	It("gives every pod an address of its own, on primary and secondary ENIs", func(ctx SpecContext) {
		seen := map[string]string{}
		for i := range f.pods {
			p := &f.pods[i]
			Expect(f.misplaced(p)).To(Succeed())
			Expect(seen).NotTo(HaveKey(p.Status.PodIP), "%s's address", p.Name)
			seen[p.Status.PodIP] = p.Name
			Expect(p.Annotations).To(BeEmpty(), "without ANNOTATE_POD_IP, %s's annotations", p.Name)
			out := f.mustRun(ctx, p, "sh", "-c", "ip -o -4 addr show dev eth0; ip route")
			Expect(out).To(ContainSubstring("inet " + p.Status.PodIP + "/32 "))
			Expect(out).To(ContainSubstring("default via 169.254.1.1 dev eth0"))
		}
		for _, r := range roles {
			Expect(f.role[r]).NotTo(BeNil(), r)
		}
	}, NodeTimeout(2*time.Minute))

	It("carries more than a packet between all pods, whose addresses stay as they are", func(ctx SpecContext) {
		check(parallel(pointers(f.pods), func(from *corev1.Pod) error {
			var echoes, asks []question
			for i := range f.pods {
				to := &f.pods[i]
				echoes = append(echoes, question{netip.AddrPortFrom(addressOf(to), echoPort).String(), "ok"})
				asks = append(asks, who(netip.AddrPortFrom(addressOf(to), httpPort), to.Name, from.Status.PodIP))
			}
			return join(f.expect(ctx, from, "echo", echoes...), f.expect(ctx, from, "ask", asks...))
		}))
	}, NodeTimeout(4*time.Minute))

	It("carries datagrams of up to the MTU and pings between pods on all ENIs and nodes, and nothing larger", func(ctx SpecContext) {
		var spaces []*os.File
		var addrs []netip.Addr
		for _, p := range f.members() {
			ns := got(f.podNetns(p))
			defer ns.Close()
			spaces, addrs = append(spaces, ns), append(addrs, addressOf(p))
			defer datagramEcho(ns, addressOf(p)).Close()
		}
		var all jobs
		for i, ns := range spaces {
			Expect(f.Network().PingFrom(ns, addrs, dialLimit)).To(HaveEach(true), "from %s to %v", addrs[i], addrs)
			for _, to := range addrs {
				all.add(func() error { return askDatagrams(ctx, ns, addrs[i], to) })
			}
		}
		check(all.run())
	}, NodeTimeout(2*time.Minute))

	It("carries more than a packet from nodes and the VPC to all pods", func(ctx SpecContext) {
		payload := make([]byte, payloadSize)
		_, _ = rand.Read(payload)
		var all jobs
		for _, o := range f.origins() {
			for i := range f.pods {
				a := addressOf(&f.pods[i])
				all.add(func() error { return o.echo(ctx, netip.AddrPortFrom(a, echoPort), payload) })
				all.add(func() error {
					return o.expect(ctx, netip.AddrPortFrom(a, httpPort), f.pods[i].Name, o.addr)
				})
			}
		}
		check(all.run())
	}, NodeTimeout(4*time.Minute))

	It("answers pings of nodes and the VPC", func() {
		var addrs []netip.Addr
		for i := range f.pods {
			addrs = append(addrs, addressOf(&f.pods[i]))
		}
		Expect(f.Network().Ping(addrs, dialLimit)).To(HaveEach(true), "from the VPC to %v", addrs)
		for _, n := range f.Nodes() {
			Expect(f.Network().PingFrom(n.Netns(), addrs, dialLimit)).To(HaveEach(true), "from %s to %v", n.Name, addrs)
		}
	})

	It("carries from pods to all nodes", func(ctx SpecContext) {
		var list []question
		for _, n := range f.Nodes() { // kube-proxy's health
			list = append(list, question{fmt.Sprintf("http://%s:10256/healthz", n.Address), "200 OK"})
		}
		check(parallel(pointers(f.pods), func(p *corev1.Pod) error { return f.expect(ctx, p, "get", list...) }))
	}, NodeTimeout(2*time.Minute))
}

func pointers[T any](list []T) []*T {
	var out []*T
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}
