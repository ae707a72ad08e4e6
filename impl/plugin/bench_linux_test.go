package plugin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/percentiles"
)

// BenchmarkExec is a whole run of the plugin, from fork to exit, with a daemon that answers at once. ADD includes making the
// veth pair, by the test's daemon; its DEL is not counted.
func BenchmarkExec(b *testing.B) {
	for _, verb := range []string{"VERSION", "DEL", "STATUS", "ADD"} {
		b.Run(verb, func(b *testing.B) {
			n := newNode(b)
			c := of(verb, "")
			if verb == "ADD" {
				c.netns = pathOf(newNamespace(b))
			}
			var took percentiles.Times
			for i := 0; b.Loop(); i++ {
				c.args = fmt.Sprintf("K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-%d", i)
				cmd := n.command(c)
				began := time.Now()
				must.Do(b, startIn(n.host, cmd))
				must.Do(b, cmd.Wait())
				took = append(took, time.Since(began))
				if verb == "ADD" {
					b.StopTimer()
					d := c
					d.verb = "DEL"
					n.ok(d)
					b.StartTimer()
				}
			}
			b.ReportMetric(took.P50().Seconds()*1e3, "ms-p50")
			b.ReportMetric(took.P99().Seconds()*1e3, "ms-p99")
		})
	}
}
