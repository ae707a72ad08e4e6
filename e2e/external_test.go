package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
)

// externalSpecs: what pods do with the world outside of the VPC.
func externalSpecs(f *fleet) {
	It("translates what leaves the VPC to the node's address", func(ctx SpecContext) {
		check(f.expectOutside(ctx, func(p *corev1.Pod) string { return f.Node(p.Spec.NodeName).Address.String() }))
	}, NodeTimeout(2*time.Minute))
}

// expectOutside says which pods are seen outside of the VPC with another address than expected. A service there tells its peers'.
func (f *fleet) expectOutside(ctx context.Context, expected func(*corev1.Pod) string) error {
	to := f.Network().InternetAddr().String()
	return parallel(pointers(f.pods), func(p *corev1.Pod) error { return f.expect(ctx, p, "read", question{to, expected(p)}) })
}
