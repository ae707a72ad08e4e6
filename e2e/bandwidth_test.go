package e2e

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a pod is limited to, in bits per second, and what it may get for it.
const (
	limited          = "10M"
	leastBits        = 8_000_000
	mostBits         = 11_000_000
	bandwidthWindow  = 5 * time.Second // over which it is measured
	bandwidthWindows = 3               // in a row that have to be within the limit
	bandwidthLimit   = 3 * time.Minute // until then what the bucket held at first is used up
)

// ENABLE_BANDWIDTH_PLUGIN chains the plugin bandwidth, which obeys the annotations.
var _ = specs("the bandwidth annotations", Label("bandwidth"), func(b *bed) {
	BeforeAll(func(ctx SpecContext) {
		b.reinstall()
		check(b.install(ctx, map[string]string{"ENABLE_BANDWIDTH_PLUGIN": "true"}))
	}, NodeTimeout(rollLimit+time.Minute))

	for _, direction := range []string{"ingress", "egress"} {
		It("limit a pod's "+direction, func(ctx SpecContext) {
			namespace := b.newNamespace(ctx, "bandwidth")
			n := b.Workers()[0]
			annotations := map[string]string{"kubernetes.io/" + direction + "-bandwidth": limited}
			got(b.Client().CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: direction, Labels: labelled("limited"), Annotations: annotations},
				Spec:       podSpec(onNode(n.Name)),
			}, metav1.CreateOptions{}))
			p := &b.awaitReady(ctx, namespace, "limited", 1)[0]
			b.awaitRate(ctx, p)
			check(b.Client().CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}))
			b.awaitGone(ctx, namespace, "")
			b.awaitNothingLeft(ctx, n, []netip.Addr{addressOf(p)})
			ifbs := got(n.Exec(ctx, "ip", "-o", "link", "show", "type", "ifb"))
			Expect(ifbs).To(BeEmpty(), "the plugin's devices on %s", n.Name)
		}, NodeTimeout(startLimit+bandwidthLimit+stopLimit+remainsLimit), PollProgressAfter(startLimit))
	}
})

// awaitRate sends a pod's echoPort as much as it takes, and waits until what comes back is within the limit for a
// while: a bucket that is full at first lets the beginning pass.
func (b *bed) awaitRate(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	conn := got(b.Network().Dial(ctx, netip.AddrPortFrom(addressOf(p), echoPort)))
	defer conn.Close()
	var bytes atomic.Int64
	go func() {
		chunk := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	}()
	go func() {
		_, _ = io.Copy(counter{&bytes}, conn)
	}()
	var rates []string
	begin, before, good := time.Now(), int64(0), 0
	what := fmt.Sprintf("%s to get %d to %d bit/s for %v", p.Name, leastBits, mostBits, bandwidthWindows*bandwidthWindow)
	await(ctx, bandwidthLimit, what, func(context.Context) (string, error) {
		if took := time.Since(begin); took >= bandwidthWindow {
			now := bytes.Load()
			rate := float64(now-before) * 8 / took.Seconds()
			begin, before, good = time.Now(), now, good+1
			if rate < leastBits || rate > mostBits {
				good = 0
			}
			rates = append(rates, fmt.Sprintf("%.2f", rate/1e6))
		}
		if good == bandwidthWindows {
			return "", nil
		}
		return fmt.Sprintf("it got, in Mbit/s, each %v: %s", bandwidthWindow, strings.Join(rates, " ")), nil
	})
	say(p.Name + " got, in Mbit/s: " + strings.Join(rates, " "))
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) { c.n.Add(int64(len(b))); return len(b), nil }
