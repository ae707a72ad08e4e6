package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = specs("a cluster", Label("datapath"), func(b *bed) {
	It("has nodes that are Ready", func(ctx SpecContext) {
		check(b.Ready(ctx))
	}, NodeTimeout(time.Minute))

	It("has pods that answer on all their ports", func(ctx SpecContext) {
		ns := b.newNamespace(ctx, "basics")
		b.deploy(ctx, ns, "web", 2)
		pods := b.awaitReady(ctx, ns, "web", 2)
		for i := range pods {
			to := addressOf(&pods[i])
			Expect(b.Fabric().Ping(addresses(to), time.Minute)).To(HaveEach(true), "ping %v", to)
			Expect(b.mustRun(ctx, &pods[1-i], "echo hello | nc -w 10 "+to.String()+" 7")).To(Equal("hello"))
		}
		mustGoOn(ctx, []*flow{b.openFlow(ctx, &pods[0]), b.openPodFlow(ctx, &pods[0], &pods[1])})
	})
})
