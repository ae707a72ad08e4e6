package e2e

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// payloadSize in bytes is many packets, whatever the MTU.
const payloadSize = 200_000

// meshScript exchanges a payload with each of the other pods, and asks each who it sees. It prints what is not as expected.
const meshScript = `head -c 200000 /dev/urandom >/tmp/payload
for to in %s; do
  name=${to%%=*} ip=${to#*=}
  timeout 30 nc -w 10 $ip 7 </tmp/payload | cmp -s - /tmp/payload || echo "$(hostname) to $name ($ip): the payload does not come back"
  found=$(ask $ip 8080)
  [ "$found" = "$name %s" ] || echo "$(hostname) to $name ($ip): expected that $name sees %[2]s, found: $found"
done`

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
			out := f.mustRun(ctx, p, "ip -o -4 addr show dev eth0; ip route")
			Expect(out).To(ContainSubstring("inet " + p.Status.PodIP + "/32 "))
			Expect(out).To(ContainSubstring("default via 169.254.1.1 dev eth0"))
		}
		for _, r := range roles {
			Expect(f.role[r]).NotTo(BeNil(), r)
		}
	}, NodeTimeout(2*time.Minute))

	It("carries more than a packet between all pods, whose addresses stay as they are", func(ctx SpecContext) {
		pods := pointers(f.pods)
		check(parallel(pods, func(from *corev1.Pod) error {
			var to []string
			for _, p := range pods {
				if p != from {
					to = append(to, p.Name+"="+p.Status.PodIP)
				}
			}
			out, err := f.run(ctx, from, fmt.Sprintf(meshScript, strings.Join(to, " "), from.Status.PodIP))
			if err != nil || out == "" {
				return err
			}
			var wrong []error
			for _, line := range strings.Split(out, "\n") {
				wrong = append(wrong, errors.New(line))
			}
			return errors.Join(wrong...)
		}))
	}, NodeTimeout(4*time.Minute))

	It("carries more than a packet from nodes and the VPC to all pods", func(ctx SpecContext) {
		payload := make([]byte, payloadSize)
		_, _ = rand.Read(payload)
		origins := []origin{f.witness()}
		for _, n := range f.Nodes() {
			origins = append(origins, host(n))
		}
		check(parallel(origins, func(o origin) error {
			var errs []error
			for i := range f.pods {
				a := addressOf(&f.pods[i])
				errs = append(errs, o.echo(ctx, netip.AddrPortFrom(a, echoPort), payload),
					o.expect(ctx, netip.AddrPortFrom(a, httpPort), answer{f.pods[i].Name, o.addr}))
			}
			return join(errs...)
		}))
	}, NodeTimeout(4*time.Minute))

	It("answers pings of nodes and the VPC", func() {
		var addrs []netip.Addr
		for i := range f.pods {
			addrs = append(addrs, addressOf(&f.pods[i]))
		}
		Expect(f.Fabric().Ping(addrs, dialLimit)).To(HaveEach(true), "from the VPC to %v", addrs)
		for _, n := range f.Nodes() {
			Expect(f.Fabric().PingFrom(n.Netns(), addrs, dialLimit)).To(HaveEach(true), "from %s to %v", n.Name, addrs)
		}
	})

	It("carries from pods to all nodes", func(ctx SpecContext) {
		check(parallel(f.members(), func(p *corev1.Pod) error {
			var script strings.Builder
			for _, n := range f.Nodes() { // kube-proxy's health
				fmt.Fprintf(&script, "printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' | timeout 30 nc -w 10 %s 10256 | head -1\n", n.Address)
			}
			out, err := f.run(ctx, p, script.String())
			if err == nil && strings.Count(out, " 200 OK") != len(f.Nodes()) {
				err = fmt.Errorf("%s asks kube-proxy on %d nodes how it is: expected 200 OK of each, found %q", p.Name, len(f.Nodes()), out)
			}
			return err
		}))
	}, NodeTimeout(2*time.Minute))
}

func pointers[T any](list []T) []*T {
	var out []*T
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}
