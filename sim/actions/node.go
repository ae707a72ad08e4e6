package actions

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// MeasureView reads a metric of a node from what its daemon believes.
func MeasureView(v *ipam.View, metric string) (int64, bool) {
	switch metric {
	case "addresses.free":
		return int64(v.Free), true
	case "addresses.assigned":
		return int64(v.Assigned), true
	case "addresses.cooling":
		return int64(v.Cooling), true
	case "addresses.quarantined":
		return int64(v.Quarantined), true
	case "addresses.total":
		return int64(v.Free + v.Assigned + v.Cooling + v.Quarantined - v.Taken), true
	case "waiting":
		return int64(v.Waiting), true
	case "serving":
		return Flag(v.Serving), true
	case "impaired":
		return Flag(len(v.Reasons) > 0), true
	case "enis":
		ready := 0
		for i := range v.ENIs {
			if v.ENIs[i].Stage == ipam.Ready {
				ready++
			}
		}
		return int64(ready), true
	}
	return 0, false
}

// MeasureDaemon reads a metric of a node from what its daemons have done since t=0.
func MeasureDaemon(a *judge.Auditor, node int, metric string) (int64, bool) {
	if metric == "daemon.starts" {
		return int64(a.Starts(node)), true
	}
	point, ok := strings.CutPrefix(metric, "reached.")
	if !ok {
		return 0, false
	}
	m := slices.Index(ipam.Marks(), point) + 1 // the first mark is 1
	return int64(a.Reached(node, ipam.Point(m))), m > 0
}

// Flag is a metric that is true or false.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Environment is a daemon's, by upstream names: what Settings.Put reads.
func Environment(s *ipam.Settings) map[string]string {
	return map[string]string{
		"WARM_ENI_TARGET": strconv.Itoa(s.WarmENITarget), "WARM_IP_TARGET": strconv.Itoa(s.WarmIPTarget),
		"MINIMUM_IP_TARGET": strconv.Itoa(s.MinimumIPTarget), "MAX_ENI": strconv.Itoa(s.MaxENI),
		"ENABLE_PREFIX_DELEGATION":              strconv.FormatBool(s.PrefixDelegation),
		"WARM_PREFIX_TARGET":                    strconv.Itoa(s.WarmPrefixTarget),
		"IP_COOLDOWN_PERIOD":                    strconv.Itoa(int(s.CoolDown / time.Second)),
		"AWS_VPC_K8S_CNI_EXTERNALSNAT":          strconv.FormatBool(s.ExternalSNAT),
		"AWS_VPC_CNI_NODE_PORT_SUPPORT":         strconv.FormatBool(s.NodePort),
		"AWS_VPC_ENI_MTU":                       strconv.Itoa(s.MTU),
		"AWS_VPC_K8S_CNI_VETHPREFIX":            s.VethPrefix,
		"DISABLE_LEAKED_ENI_CLEANUP":            strconv.FormatBool(s.NoSweep),
		"DISABLE_NETWORK_RESOURCE_PROVISIONING": strconv.FormatBool(s.NoProvisioning),
		"ENABLE_SUBNET_DISCOVERY":               strconv.FormatBool(s.Discovery),
		"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    strconv.FormatBool(s.CustomNetwork),
		"ENI_CONFIG_ANNOTATION_DEF":             s.ConfigAnnotation,
		"ENI_CONFIG_LABEL_DEF":                  s.ConfigLabel,
		"ENABLE_IMDS_ONLY_MODE":                 strconv.FormatBool(s.IMDSOnly),
		"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES":     s.Excluded.String(),
		"AWS_MANAGE_ENIS_NON_SCHEDULABLE":       strconv.FormatBool(s.ManageWhenCordon),
		"MANAGE_UNTAGGED_ENI":                   strconv.FormatBool(!s.LeaveUntagged),
	}
}

// History is a node's sandboxes by their pods' names, newest last: enough of them to replay a stale DEL of one. It is a value; Clone
// forks it.
type History []past

type past struct{ pod, containerID string }

// maxPast bounds how many a node remembers.
const maxPast = 256

// Add remembers a sandbox whose ADD is run.
func (h *History) Add(pod, containerID string) {
	if s := *h; len(s) == maxPast {
		*h = append(s[:0], s[maxPast/2:]...)
	}
	*h = append(*h, past{pod, containerID})
}

// Clone is an independent copy.
func (h History) Clone() History { return slices.Clone(h) }

// Before is the sandbox that had the pod's name before the newest one; false when none had.
func (h History) Before(pod, newest string) (containerID string, ok bool) {
	for _, s := range slices.Backward(h) {
		if s.pod == pod && s.containerID != newest {
			return s.containerID, true
		}
	}
	return "", false
}

// ReplayDEL sends a DEL of the sandbox that had the pod's name before the newest one again, as kubelet does for as long as it fails.
func (h History) ReplayDEL(n *cri.Node, now time.Duration, p verb.Pod, after []time.Duration) verb.Strike {
	newest, _ := n.SandboxOf(p.UID)
	old, ok := h.Before(p.Name, newest)
	if !ok {
		return verb.Miss("pod %s has had no sandbox before this one", p.Name)
	}
	for _, d := range after {
		if !n.ReplayDEL(now, old, d) {
			return verb.Miss("the runtime remembers no earlier sandbox of pod %s", p.Name)
		}
	}
	return verb.Wait("the stale DEL was not run")
}
