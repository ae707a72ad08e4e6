package verb

import (
	"time"
)

var replayDEL = &Verb{
	Name: "replay-del", On: onPod,
	Params: []Param{named("after", Duration, "0s", "how much later"), named("every", Duration, "0s", "and again"), named("times", Count, "1", "how often")},
	Doc:    "a stale DEL of the pod's previous sandbox arrives, with empty CNI_NETNS",
	Source: "seeds/003",
	Strike: func(t *Target) Strike {
		var after []time.Duration
		for i := range max(t.Int("times"), 1) {
			after = append(after, t.Duration("after")+time.Duration(i)*t.Duration("every"))
		}
		return t.Runtime.ReplayDEL(t.Pod, after)
	},
}
