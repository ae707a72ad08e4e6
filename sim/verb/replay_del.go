package verb

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var replayDEL = &Verb{
	Name: "replay-del", On: onPod,
	Params: []Param{named("after", Duration, "0s", "how much later"), named("every", Duration, "0s", "and again"),
		named("times", Count, "1", "how often")},
	Doc:    "a stale DEL of the pod's previous sandbox arrives, with empty CNI_NETNS",
	Source: "seeds/003",
	Strike: func(t *Target) Strike {
		var after []time.Duration
		for i := range max(t.Int("times"), 1) {
			after = append(after, t.Duration("after")+time.Duration(i)*t.Duration("every"))
		}
		return t.Runtime.ReplayDEL(t.Pod, after)
	},
	Draw:    &Draw{Weight: 3, Draw: drawReplayDEL},
	DrawAny: &Draw{Weight: 3, Draw: drawReplayDEL},
}

func drawReplayDEL(p *draw.Plan, at time.Duration) {
	l := p.SomeLoad()
	if l == nil {
		return
	}
	pod, args := p.PodOf(l), ""
	if p.Chance(50) {
		p.Wanted = max(p.Wanted, at)
		p.Write(at, "pod %s delete", pod) // a name that had a sandbox before
		at = p.Later(at, 5*time.Second, 40*time.Second)
	}
	if p.Chance(50) {
		args += " after=" + draw.Short(p.Span(0, time.Minute, time.Second))
	}
	if p.Chance(50) {
		args += fmt.Sprintf(" every=%s times=%d", draw.Short(p.Span(time.Second, 15*time.Second, time.Second)),
			p.Between(2, 5))
	}
	p.Write(at, "pod %s replay-del%s", pod, args)
}
