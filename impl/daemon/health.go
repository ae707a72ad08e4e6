package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// health is whether the node can take pods, and why it cannot, as the log, callers and Kubernetes hear it.
type health struct {
	*core
	agent   *agent
	placing *placing
	news    *news

	began    time.Duration
	before   bool // an earlier daemon has served since the machine started
	served   bool
	wasReady atomic.Bool // served or before, for any goroutine
	view     ipam.View
	reasons  string        // as they were said last
	unsaid   bool          // they have changed since
	sayAgain time.Duration // not before
	looked   uint64        // step after which they were looked at
}

// noticeServing remembers that this node can take pods. One that has never had an address, and should get some, cannot: where EC2 refuses
// that from the start, pods belong on other nodes (rule J).
func (h *health) noticeServing() {
	if h.served {
		return
	}
	if h.node.View(&h.view); !h.view.Serving || bare(&h.view) {
		return
	}
	h.served = true
	h.wasReady.Store(true)
	h.log.Info("ipamd serves", "after", h.clock.Now()-h.began, "assigned", h.view.Assigned, "free", h.view.Free, "enis", len(h.view.ENIs))
	if err := os.WriteFile(filepath.Join(h.c.RunDir, servedFile), nil, 0o644); err != nil {
		h.log.Warn("that this node has served cannot be remembered", "err", err)
	}
	h.placing.begin()
}

// sayWhy logs why pods cannot be taken or the node is impaired, when that has changed. What changes within a pause is said at its end,
// and a start that takes less time is no news.
func (h *health) sayWhy() {
	now := h.clock.Now()
	if h.node == nil || h.steps == h.looked && !h.unsaid {
		return
	}
	h.looked = h.steps
	h.node.View(&h.view)
	why := join(h.view.Reasons)
	h.unsaid = why != h.reasons && now < h.sayAgain
	if why == h.reasons || h.unsaid {
		return
	}
	h.reasons, h.sayAgain = why, now+reasonsPause
	if why == "" {
		h.log.Info("all is well")
	} else {
		h.log.Warn("the node is impaired", "serving", h.view.Serving, "why", why)
	}
}

// ready is STATUS, and why pods cannot be taken or the node is impaired. It is false only before the node has ever served since
// it was started, or when a daemon is not back to serving within statusGrace: every failed STATUS makes containerd report the
// network down, and pods are evicted for it (rule J).
func (h *health) ready() (bool, []string) {
	if h.node == nil {
		return false, h.c.Problems
	}
	h.node.View(&h.view)
	reasons := append([]string(nil), h.view.Reasons...)
	if since := (h.clock.Now() - h.began).Round(time.Millisecond); !h.view.Serving && len(reasons) == 0 {
		reasons = []string{fmt.Sprintf("ipamd recovers since %v", since)}
	} else if len(reasons) == 0 && !h.served {
		reasons = []string{fmt.Sprintf("EC2 has given this node no address for pods since ipamd started %v ago", since)}
	}
	for _, why := range []string{h.placing.why, h.agent.unprotected()} {
		if why != "" {
			reasons = append(reasons, why)
		}
	}
	reasons = append(reasons, h.c.Unread...)
	if h.news.unenforced {
		reasons = append(reasons, h.news.policyless())
	}
	return (h.served || h.before && h.clock.Now()-h.began < statusGrace) && !h.placing.missing, reasons
}

// serving is what a rolling update waits for: this daemon has taken up its work, and the runtime is told where the network is.
func (h *health) serving() bool { return h.served && !h.placing.begun && !h.placing.missing }

// bare says whether a node has no address and will ask for some. A node that may not, or is cordoned, has what it has.
func bare(v *ipam.View) bool {
	return v.Free+v.Assigned+v.Cooling+v.Quarantined == 0 && v.Settings.Provisions()
}
