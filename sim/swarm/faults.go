package swarm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kind is a fault that a swarm draws.
type kind struct {
	key    string // the verb's, as verb.Verb.Key says it
	weight int
	strike func(p *plan, at time.Duration)
}

// kinds are all faults that a correct CNI survives. A test compares them with the verbs, both ways.
func kinds() []kind {
	return []kind{
		{"node socket", 4, (*plan).socket},
		{"node restart", 3, (*plan).restart},
		{"node upgrade", 2, (*plan).upgrade},
		{"node kill", 5, func(p *plan, at time.Duration) { p.write(at, "%s kill", p.anyNode()) }},
		{"node kill-at", 5, (*plan).killAt},
		{"node hold", 3, (*plan).hold},
		{"node terminate", 2, (*plan).terminate},
		{"node reboot", 2, func(p *plan, at time.Duration) { p.write(at, "%s reboot", p.oneNode()) }},
		{"node gc", 3, func(p *plan, at time.Duration) {
			p.write(at, "%s gc valid=%s", p.anyNode(), pick(&p.source, "all", "none", "missing"))
		}},
		{"node fail-dels", 3, (*plan).failDELs},
		{"node lose-records", 3, (*plan).loseRecords},
		{"node flush-rules", 2, func(p *plan, at time.Duration) { p.write(at, "%s flush-rules", p.anyNode()) }},
		{"node flush-routes", 2, (*plan).flushRoutes},
		{"node flush-nat", 2, func(p *plan, at time.Duration) { p.write(at, "%s flush-nat", p.anyNode()) }},
		{"node interrupt-dumps", 2, func(p *plan, at time.Duration) {
			p.write(at, "%s interrupt-dumps times=%d", p.anyNode(), p.between(1, 5))
		}},
		{"node restart-kubelet", 3, func(p *plan, at time.Duration) { p.write(at, "%s restart-kubelet", p.anyNode()) }},
		{"node restart-runtime", 3, func(p *plan, at time.Duration) { p.write(at, "%s restart-runtime", p.anyNode()) }},
		{"pod force-delete", 3, (*plan).forceDelete},
		{"pod hang", 3, (*plan).hangPod},
		{"pod hide", 1, (*plan).hide},
		{"pod lose-gateway", 2, onPod("lose-gateway")},
		{"pod change-mac", 2, onPod("change-mac")},
		{"pod lose-alias", 3, (*plan).loseAlias},
		{"pod replay-del", 3, (*plan).replayDEL},
		{"ec2 lose", 5, (*plan).lose},
		{"ec2 duplicate", 3, func(p *plan, at time.Duration) { p.write(at, "ec2 duplicate %s%s%s", p.call(), p.times(3), p.whose()) }},
		{"ec2 fail", 4, (*plan).fail},
		{"ec2 throttle", 2, func(p *plan, at time.Duration) { p.write(at, "ec2 throttle %s%s%s", p.call(), p.times(5), p.whose()) }},
		{"ec2 slow", 4, (*plan).slow},
		{"ec2 deny", 2, (*plan).deny},
		{"ec2 skew", 2, (*plan).skew},
		{"ec2 stale", 3, (*plan).stale},
		{"ec2 hang", 3, (*plan).hangCloud},
		{"ec2 in-use", 2, func(p *plan, at time.Duration) { p.write(at, "ec2 in-use%s%s", p.times(4), p.whose()) }},
		{"ec2 detach", 2, (*plan).detach},
		{"ec2 attach", 3, (*plan).attach},
		{"ec2 leak", 2, (*plan).leak},
		{"ec2 drain-subnet", 2, (*plan).drainSubnet},
		{"ec2 down", 2, func(p *plan, at time.Duration) {
			p.write(at, "ec2 down for=%s", short(p.lasts(at, 10*time.Second, p.long(3*time.Minute))))
		}},
		{"imds silent", 2, (*plan).silent},
		{"imds lag", 3, (*plan).lag},
		{"pod add-addresses", 2, (*plan).addAddresses},
	}
}

// closing are verbs that end what another one began, and are drawn with it.
var closing = []string{"node unhold", "pod unhang"}

// ordinary are what people and controllers do. They are part of every seed's workload.
var ordinary = []string{"kube create", "kube scale", "kube roll", "pod delete"}

// enable draws which faults the seed may use.
func (p *plan) enable() {
	all, percent := kinds(), pick(&p.source, 8, 15, 25, 50)
	for i := range all {
		if k := &all[i]; p.chance(percent) && p.fits(k) {
			p.kinds = append(p.kinds, k)
		}
	}
	for _, r := range apart() {
		keys := map[string]bool{}
		for _, k := range p.kinds {
			keys[k.key] = true
		}
		if r.met(keys) {
			p.kinds = slices.DeleteFunc(p.kinds, func(k *kind) bool { return r.without(k.key) })
		}
	}
	for _, k := range p.kinds {
		p.weight += k.weight
	}
	if slices.ContainsFunc(p.kinds, func(k *kind) bool { return k.key == "ec2 attach" }) {
		p.shape.foreign, p.shape.prefixed = 1, p.chance(20)
		if p.shape.enis > 3 && p.chance(25) {
			p.shape.foreign = 2
		}
		p.fit()
	}
	if slices.ContainsFunc(p.kinds, func(k *kind) bool { return k.key == "ec2 leak" }) {
		p.shape.leaked, p.shape.unnamed = mostLeaked, p.chance(50)
		p.fit()
	}
	if slices.ContainsFunc(p.kinds, func(k *kind) bool { return k.key == "node terminate" }) {
		p.doomed = p.between(1, p.shape.nodes)
	}
}

// rule is about faults that no CNI survives together: where all of some may happen, none of the others may.
type rule struct {
	all     []string
	without func(key string) bool
	why     string
}

// met says whether all of a rule's faults are among these.
func (r rule) met(keys map[string]bool) bool {
	return !slices.ContainsFunc(r.all, func(key string) bool { return !keys[key] })
}

// apart are the rules, in the order in which they leave faults out.
func apart() []rule {
	return []rule{
		{[]string{"ec2 detach"}, hinders,
			"an ENI is detached by a stranger, and the cloud or the daemon may fail: nobody can attach it again in time"},
		{[]string{"node lose-records", "pod change-mac"}, among("pod lose-alias"),
			"records, alias and MAC of a host veth may all be lost: only the pod knows what the MAC was"},
		{[]string{"ec2 stale", "imds lag"}, among("node lose-records", "node reboot"),
			"records may be lost while EC2 and metadata tell of a minute and a half ago: nobody knows what was given back since"},
		{[]string{"node lose-records", "imds silent"},
			among("node flush-rules", "node flush-routes", "node flush-nat", "pod lose-gateway", "pod change-mac", "pod lose-alias"),
			"records may be lost while metadata is silent: nobody puts back in time what pods lack"},
	}
}

func among(keys ...string) func(string) bool {
	return func(key string) bool { return slices.Contains(keys, key) }
}

// hinders says whether a fault may keep anybody from noticing that an ENI was detached, and from attaching it again, in time: nobody
// can while the cloud fails, and what a dead daemon had asked of EC2 is in doubt for two minutes.
func hinders(key string) bool {
	switch key {
	case "ec2 detach":
		return false
	case "node kill", "node kill-at", "node hold", "node reboot", "node lose-records", "node restart", "node upgrade":
		return true
	}
	return strings.HasPrefix(key, "ec2 ") || strings.HasPrefix(key, "imds ")
}

// fits says whether the shape has what the fault needs.
func (p *plan) fits(k *kind) bool {
	switch k.key {
	case "node terminate":
		return p.shape.nodes > 1 && !p.shape.settings.NoSweep
	case "node lose-records":
		return !p.shape.settings.NoSweep
	case "node restart-runtime":
		return p.shape.runtime != "containerd-1.6" // it forgets sandboxes that are being made, and their namespaces keep the addresses
	case "node flush-routes", "ec2 detach", "ec2 attach":
		return p.shape.enis > 1
	}
	return true
}

// strike draws one of the enabled faults, and says whether a daemon starts after it; a seed without any is a day without trouble.
func (p *plan) strike(at time.Duration) (starts bool) {
	if p.weight == 0 {
		p.operate(at)
		return false
	}
	left := p.between(1, p.weight)
	for _, k := range p.kinds {
		if left -= k.weight; left <= 0 {
			k.strike(p, at)
			return k.key == "node kill" || k.key == "node restart" || k.key == "node upgrade"
		}
	}
	return false
}

func (p *plan) oneNode() string { return fmt.Sprintf("node-%d", p.between(1, p.shape.nodes)) }

func (p *plan) anyNode() string {
	if p.shape.nodes > 1 && p.chance(25) {
		return "node-*"
	}
	return p.oneNode()
}

// mutations are the calls that change something at EC2.
var mutations = []string{"CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute", "DetachNetworkInterface",
	"DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"}

func (p *plan) call() string {
	if p.chance(15) {
		return pick(&p.source, "DescribeNetworkInterfaces", "any")
	}
	return pick(&p.source, mutations...)
}

func (p *plan) times(most int) string {
	if n := p.between(1, most); n > 1 {
		return fmt.Sprintf(" times=%d", n)
	}
	return ""
}

func (p *plan) whose() string {
	if p.shape.nodes > 1 && p.chance(40) {
		return fmt.Sprintf(" node=%d", p.between(1, p.shape.nodes))
	}
	return ""
}

func (p *plan) socket(at time.Duration) {
	node := p.oneNode()
	p.write(at, "%s socket cri=%s", node, pick(&p.source, "absent", "unimplemented", "empty", "partial"))
	p.write(p.later(at, 20*time.Second, 6*time.Minute), "%s socket cri=right", node)
}

func (p *plan) restart(at time.Duration) {
	args := ""
	if p.chance(30) {
		args += " AWS_VPC_K8S_CNI_EXTERNALSNAT=" + pick(&p.source, "true", "false")
	}
	if p.chance(30) {
		args += " " + p.setting()
	}
	p.write(at, "%s restart%s", p.anyNode(), args)
}

// setting is one that a restart changes. What a pool may hoard stays within what the subnet has room for.
func (p *plan) setting() string {
	h := &p.shape
	switch {
	case p.chance(40):
		return fmt.Sprintf("IP_COOLDOWN_PERIOD=%d", pick(&p.source, 0, 5, 10, 20, 60))
	case h.settings.WarmIPTarget > 0:
		return fmt.Sprintf("WARM_IP_TARGET=%d", p.between(1, h.settings.WarmIPTarget))
	default:
		return fmt.Sprintf("WARM_ENI_TARGET=%d", p.between(0, 2))
	}
}

// upgrade is to another version than the last one was to, wherever that was.
func (p *plan) upgrade(at time.Duration) {
	part := pick(&p.source, "", " part=daemon", " part=plugin")
	p.upgraded = 3 - p.upgraded
	p.write(at, "%s upgrade to=%d%s", p.anyNode(), p.upgraded, part)
}

func (p *plan) killAt(at time.Duration) {
	call := pick(&p.source, mutations...)
	if p.chance(10) {
		call = "DescribeNetworkInterfaces"
	}
	p.write(at, "%s kill-at %s when=%s", p.anyNode(), call, pick(&p.source, "before", "after"))
}

func (p *plan) hold(at time.Duration) {
	node := p.anyNode()
	p.write(at, "%s hold", node)
	p.write(p.later(at, time.Second, 4*time.Minute), "%s unhold", node)
}

func (p *plan) terminate(at time.Duration) {
	if at < p.safety/3 || p.gone {
		p.operate(at)
		return
	}
	p.gone = true
	p.write(at, "node-%d terminate", p.doomed)
}

func (p *plan) failDELs(at time.Duration) {
	after := ""
	if p.chance(50) {
		after = " after=" + short(p.span(0, 5*time.Second, time.Second))
	}
	p.write(at, "%s fail-dels%s%s", p.oneNode(), p.times(5), after)
}

// loseRecords: only the next daemon misses them, so it often follows soon.
func (p *plan) loseRecords(at time.Duration) {
	node := p.oneNode()
	p.write(at, "%s lose-records", node)
	if p.chance(60) {
		p.write(p.later(at, 0, 5*time.Second), "%s %s", node, pick(&p.source, "kill", "restart"))
	}
}

// loseAlias is of one pod, or of some: as after another CNI.
func (p *plan) loseAlias(at time.Duration) {
	for range p.between(1, 4) {
		onPod("lose-alias")(p, at)
	}
}

// flushRoutes takes an ENI's table, which is the CNI's own: device 1 has table 2.
func (p *plan) flushRoutes(at time.Duration) {
	p.write(at, "%s flush-routes table=%d", p.oneNode(), p.between(2, p.shape.enis))
}

func onPod(verb string) func(*plan, time.Duration) {
	return func(p *plan, at time.Duration) {
		if l := p.someLoad(); l != nil {
			p.write(at, "pod %s %s", p.podOf(l), verb)
		}
	}
}

// addAddresses is of a pod with NET_ADMIN: of some addresses, or of more than its node has.
func (p *plan) addAddresses(at time.Duration) {
	if l := p.someLoad(); l != nil {
		p.write(at, "pod %s add-addresses %d", p.podOf(l), p.between(1, 40))
	}
}

func (p *plan) forceDelete(at time.Duration) {
	p.wanted = max(p.wanted, at)
	onPod("force-delete")(p, at)
}

func (p *plan) hangPod(at time.Duration) {
	l := p.someLoad()
	if l == nil {
		return
	}
	p.unready = true // its name may be another pod's when it ends
	pod := p.podOf(l)
	p.write(at, "pod %s hang", pod)
	if p.chance(60) {
		then := p.later(at, 0, 30*time.Second)
		p.wanted = max(p.wanted, then)
		p.write(then, "pod %s %s", pod, pick(&p.source, "delete", "force-delete"))
	}
	p.write(p.later(at, 30*time.Second, 6*time.Minute), "pod %s unhang", pod)
}

// hide is for good: the sandbox runs on, and nobody knows of it.
func (p *plan) hide(at time.Duration) {
	if l := p.someLoad(); l != nil && p.hidden < 2 {
		p.hidden++
		p.write(at, "pod %s hide", p.podOf(l))
	}
}

func (p *plan) replayDEL(at time.Duration) {
	l := p.someLoad()
	if l == nil {
		return
	}
	pod, args := p.podOf(l), ""
	if p.chance(50) {
		p.wanted = max(p.wanted, at)
		p.write(at, "pod %s delete", pod) // a name that had a sandbox before
		at = p.later(at, 5*time.Second, 40*time.Second)
	}
	if p.chance(50) {
		args += " after=" + short(p.span(0, time.Minute, time.Second))
	}
	if p.chance(50) {
		args += fmt.Sprintf(" every=%s times=%d", short(p.span(time.Second, 15*time.Second, time.Second)), p.between(2, 5))
	}
	p.write(at, "pod %s replay-del%s", pod, args)
}

func (p *plan) lose(at time.Duration) {
	after := ""
	if p.chance(30) {
		after = " after=dropped"
	}
	p.write(at, "ec2 lose %s%s%s%s", p.call(), p.times(3), after, p.whose())
}

// attachLimit is how EC2 refuses an attach as one too many, which a node believes for twice as long each time: after four in a row the next try is a
// quarter of an hour after the first, after seven it is two hours.
const attachLimit = "AttachmentLimitExceeded"

// afterTheDeed are error codes of EC2's that any call may meet, also one that was carried out.
var afterTheDeed = []string{"InternalError", "Unavailable", "RequestLimitExceeded"}

// refused are error codes for callers that are too fast, or whose credentials or clock are wrong for a while.
var refused = []string{"Throttling", "BandwidthLimitExceeded", "UnauthorizedOperation", "AuthFailure", "RequestExpired", "ExpiredToken", "Blocked"}

// mostRefusals is how often in a row a call is refused.
const mostRefusals = 4

// refusals are error codes that a call may meet although nothing is wrong with it.
var refusals = map[string][]string{
	"CreateNetworkInterface":   {"InsufficientFreeAddressesInSubnet", "NetworkInterfaceLimitExceeded"},
	"AttachNetworkInterface":   {attachLimit},
	"AssignPrivateIpAddresses": {"InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded"},
	"DeleteNetworkInterface":   {"InvalidNetworkInterface.InUse"},
}

func (p *plan) fail(at time.Duration) {
	call := p.call()
	code := pick(&p.source, slices.Concat(afterTheDeed, refusals[call], refused)...)
	times, whose := p.times(mostRefusals), p.whose()
	if code == attachLimit {
		if p.limited {
			return
		}
		p.limited = true
	}
	after := ""
	if slices.Contains(afterTheDeed, code) && p.chance(30) {
		after = " after=executed"
	}
	p.write(at, "ec2 fail %s %s%s%s%s", call, code, times, after, whose)
}

func (p *plan) slow(at time.Duration) {
	way := ""
	if p.chance(40) {
		way = " way=back"
	}
	p.write(at, "ec2 slow %s by=%s%s%s%s", p.call(), short(p.span(time.Second, 25*time.Second, time.Second)), p.times(3), way, p.whose())
}

func (p *plan) deny(at time.Duration) {
	p.write(at, "ec2 deny %s for=%s%s", p.call(), short(p.lasts(at, 10*time.Second, p.long(4*time.Minute))), p.whose())
}

// long is how long an outage may take: now and then much longer than usual.
func (p *plan) long(usual time.Duration) time.Duration {
	if p.chance(15) {
		return 20 * time.Minute
	}
	return usual
}

func (p *plan) skew(at time.Duration) {
	clock := ""
	if p.chance(50) {
		clock = " clock=ahead"
	}
	p.write(at, "ec2 skew by=%s%s for=%s%s", short(p.span(6*time.Minute, 15*time.Minute, time.Minute)), clock,
		short(p.lasts(at, 10*time.Second, 3*time.Minute)), p.whose())
}

// stale stays below the two minutes in which EC2 is consistent at last; metadata may be an hour behind.
func (p *plan) stale(at time.Duration) {
	p.write(at, "ec2 stale by=%s for=%s%s", short(p.span(5*time.Second, 100*time.Second, 5*time.Second)),
		short(p.lasts(at, 20*time.Second, 4*time.Minute)), p.whose())
}

// promptly is how late metadata shows changes when nothing is wrong with it.
const promptly = time.Second

func (p *plan) lag(at time.Duration) {
	most := 100 * time.Second
	if p.chance(15) {
		most = time.Hour
	}
	p.write(at, "imds lag by=%s", short(p.span(5*time.Second, most, 5*time.Second)))
	p.write(p.safety, "imds lag by=%s", short(promptly))
}

func (p *plan) hangCloud(at time.Duration) {
	p.write(at, "ec2 hang %s for=%s%s", pick(&p.source, "attach", "detach"), short(p.lasts(at, 20*time.Second, 8*time.Minute)), p.whose())
}

// young is how long after pods came or went an ENI may be too new to be missed: for two minutes EC2 may not know it yet.
const young = 150 * time.Second

func (p *plan) detach(at time.Duration) {
	if at < p.wanted+young {
		p.operate(at)
		return
	}
	p.detaches = true
	p.write(at, "ec2 detach node=%d device=%d", p.between(1, p.shape.nodes), p.between(1, p.shape.enis-1))
}

// attach is once or twice per node: the pods have room without these device indexes.
func (p *plan) attach(at time.Duration) {
	node := p.between(1, p.shape.nodes)
	if p.attached[node] == p.shape.foreign {
		p.operate(at)
		return
	}
	p.attached[node]++
	addresses := fmt.Sprintf("addresses=%d", p.between(0, mostForeign-1))
	if p.shape.prefixed && p.chance(50) {
		addresses = fmt.Sprintf("prefixes=%d", p.between(1, mostPrefixes))
	}
	p.write(at, "ec2 attach kind=%s node=%d %s", pick(&p.source, "no_manage", "no_manage", "untagged", "trunk", "efa", "efa-only"), node, addresses)
}

// mostLeaked is how many ENIs other clusters leave.
const mostLeaked = 2

// leak leaves what nobody here may touch, or what a node of this cluster has left: that is swept within hours.
func (p *plan) leak(at time.Duration) {
	if p.leaks == mostLeaked {
		p.operate(at)
		return
	}
	p.leaks++
	of := pick(&p.source, "another-cluster", "another-vpc")
	if set := &p.shape.settings; !set.NoSweep && !set.IMDSOnly && p.chance(30) {
		of, p.sweeps = "this-cluster", true
	}
	p.write(at, "ec2 leak of=%s addresses=%d", of, p.between(0, mostForeign-1))
}

// drainSubnet has strangers take addresses, and give back all of them.
func (p *plan) drainSubnet(at time.Duration) {
	p.write(at, "ec2 drain-subnet leave=%d", p.between(0, 6))
	p.write(p.later(at, 30*time.Second, 6*time.Minute), "ec2 drain-subnet leave=%d", usable(p.shape.bits))
}

func (p *plan) silent(at time.Duration) {
	p.write(at, "imds silent for=%s%s", short(p.lasts(at, 10*time.Second, p.long(3*time.Minute))), p.whose())
}
