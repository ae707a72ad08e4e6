package e2e

import (
	"context"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletSpecs: what kubelet and the plugins that are chained after ours do with pods.
func kubeletSpecs(f *fleet) {
	It("lets kubelet probe pods, and see when they are not ready", func(ctx SpecContext) {
		for _, r := range roles {
			f.mustRun(ctx, f.role[r], peer, "unready")
		}
		for _, r := range roles {
			f.awaitReadiness(ctx, f.role[r], false)
			f.mustRun(ctx, f.role[r], peer, "ready")
		}
		for _, r := range roles {
			f.awaitReadiness(ctx, f.role[r], true)
		}
		pods := got(f.bed.pods(ctx, f.namespace, "fleet"))
		for _, p := range pods {
			Expect(p.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "restarts of %s, which its liveness probe finds alive", p.Name)
		}
	}, NodeTimeout(3*time.Minute))

	It("carries to the ports of a node that are a pod's", func(ctx SpecContext) {
		n := f.Workers()[1]
		var all jobs
		for _, p := range f.on(n) {
			to := netip.AddrPortFrom(n.Address, hostPort(p))
			for _, o := range f.origins() {
				all.add(func() error { return o.expect(ctx, to, p.Name, o.addr) })
			}
		}
		check(all.run())
		check(parallel(f.members(), func(from *corev1.Pod) error {
			var list []question
			for _, r := range []string{"b-primary", "b-secondary"} {
				p := f.role[r]
				peer := from.Status.PodIP
				if p == from { // portmap masquerades it
					peer = n.Address.String()
				}
				list = append(list, who(netip.AddrPortFrom(n.Address, hostPort(p)), p.Name, peer))
			}
			return f.expect(ctx, from, "ask", list...)
		}))
	}, NodeTimeout(3*time.Minute))
}

func (f *fleet) awaitReadiness(ctx context.Context, p *corev1.Pod, expected bool) {
	GinkgoHelper()
	what := p.Name + " to be Ready"
	if !expected {
		what = p.Name + " not to be Ready"
	}
	await(ctx, startLimit, what, func(ctx context.Context) (string, error) {
		now, err := f.Client().CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || ready(now) == expected {
			return "", err
		}
		return "kubelet's probe has not seen it", nil
	})
}
