package virtual_test

import (
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// Scripts that once broke an invariant, for bugs that no mutant brings back.
var found = map[string]string{
	// An unassignment of a dead daemon landed after EC2 had given the same address to the same ENI again, and to a pod.
	"late unassignment": `
cluster nodes=1 type=m5.large subnet=10.0.50.0/24 runtime=containerd
config  WARM_IP_TARGET=1 MINIMUM_IP_TARGET=1 MAX_ENI=1
start   pods web 2 on node-1
at 10s  kube create burst 1
at 1m   ec2 drain-subnet leave=0
at 2m   kube scale burst 0
at 2m   ec2 slow UnassignPrivateIpAddresses by=15s
at 213s node-1 kill
at 216s kube scale burst 2
finally converges within 20m
`,
	// A restarted daemon did not see an ENI of its own behind stale answers, made another for its device index, and tried to attach it for ever.
	"attach to a taken index": `
cluster runtime=containerd-1.6
at 0s   ec2 stale
at 0s   kube create app 10
at 3s   node-1 restart
at 1m3s within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	// EC2 said "detaching", and the daemon waited two minutes for the link of an ENI that a third party was taking away.
	"detach seen under way": `
cluster type=t3.small
start   pods web 1 on node-1
at 0s   kube scale web 7
at 3m   ec2 detach device=2
at 3m0.275625s ec2 detach
finally converges within 20m
`,
	// The world lost the rows of a daemon's records for good that lived on, and that wrote but some of them again: the file is always written whole.
	"records lost under a daemon that writes them again": `
cluster nodes=3 type=t3.small
start   pods web 2 on node-*
maybe at 0s node-2 upgrade to=1
maybe at 2s kube roll web 4
maybe at 2.0234375s node-* restart
maybe at 4.0234375s every 8s until 12.0234375s kube roll web 1
maybe at 4.8s node-2 lose-records
maybe at 5.8234375s node-2 restart
maybe at 5.8234375s kube roll web 5
finally converges within 20m
`,
	// The runtime restarted during ADDs, calls no DEL for those (containerd's guard), and lists such a sandbox, not ready, for as long as it is its
	// pod's newest. What it had was kept for as long; the pod's next sandbox waited for it, and so it stayed the newest.
	"a dead sandbox starves its pod": `
cluster type=t3.nano runtime=containerd-1.7-guard
start pods web 1 on node-1
at 0s kube create db 1
at 0s kube create app 1
maybe at 13s node-1 restart-runtime
at 0s kube scale db 0
at 13s within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	"a dead sandbox keeps its address": `
cluster type=t3.small runtime=containerd-2.1
start pods web 1 on node-1
at 0s kube scale web 9
maybe at 2s node-1 hold
maybe at 0s node-1 restart-runtime
finally converges within 2h30m
`,
	// EC2 refused to unassign what was too much on an ENI; until it did not, nobody put back the routes that a third
	// party had flushed.
	"drift beside a refused call": `
cluster type=m5.large
config  WARM_IP_TARGET=1 MAX_ENI=2
start   pods web 12 on node-1
at 0s   kube create burst 5
at 1m   kube scale burst 0
at 1m   ec2 deny UnassignPrivateIpAddresses for=7m
at 4m   node-1 flush-routes table=2
at 8m   within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	// A DEL was left on disk, which was its answer; it could not be carried out at once, a reboot took the folder away, and what the intent had
	// met was held against the daemon for good.
	"an intent fails, and a reboot ends it": `
cluster max-pods=1
start pods web 1 on node-1
maybe at 0s node-1 reboot
maybe at 0s imds silent
maybe at 1m4s node-1 reboot
finally converges within 20m
`,
	// An unassignment that was carried out was answered with a refusal, an older answer of EC2's listed the addresses yet, and the next pod got one.
	"unassigned, refused, listed": `
cluster nodes=1
config MINIMUM_IP_TARGET=1
start pods web 1 on node-1
maybe at 0s ec2 stale for=1m40s
at 0s kube scale web 0
at 0s kube create app 1
maybe at 1m ec2 duplicate any
at 1m34s kube create job 1
at 1m40s within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	// EC2 refused an attach twice as one too many, as if somebody else had the device index for a moment, and pods waited for half an hour.
	"an attach limit is met twice": `
cluster runtime=containerd-1.6
config WARM_ENI_TARGET=0
at 0s kube create db 6
maybe at 0s ec2 fail AttachNetworkInterface AttachmentLimitExceeded times=2
at 0s kube create app 4
at 0s within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	// Metadata and EC2 lacked an address of an ENI that a third party had taken off and that was attached again. Metadata
	// listed it next, so EC2 was not asked any more, and an address that EC2's last answer lacked is given to nobody.
	"metadata's yes after EC2's no": `
cluster type=t3.small
config WARM_IP_TARGET=3
start pods web 4 on node-1
maybe at 0s kube roll web 1
maybe at 2m30s ec2 detach
at 2m30s kube create app 4
at 2m30s kube create job 1
at 2m30s kube scale app 2
at 2m30s kube scale job 3
at 2m30s within 15m expect kube pods.unready == 0
finally converges within 2h30m
`,
	// EC2's answers were of before an ENI was made that was detached a minute and a half later: it was taken for deleted, and nobody deleted it.
	"detached before EC2 shows it": `
cluster nodes=4 type=c5.xlarge
start pods web 7 on node-*
at 8m50s kube scale web 0
at 8m55s kube create app 32
maybe at 8m50s ec2 stale by=1m35s for=1m40s
at 10m30s kube scale app 0
finally converges within 20m
`,
	// Addresses that were to be given back were wanted again, and more than those: what else fits on their ENI was not counted, and another was made.
	"given back no more, and room besides": `
cluster type=c5.xlarge
config WARM_IP_TARGET=1
start pods web 14 on node-1
maybe at 0s pod web-0 delete
maybe at 1m ec2 deny UnassignPrivateIpAddresses for=2m
maybe at 1m38s node-1 restart
maybe at 1m48s every 20s until 3m8s kube roll web 4
finally converges within 20m
`,
	// A reboot took the record of what was given back, EC2's answer was of before that, and the address was free at once.
	"given back before a reboot": `
cluster runtime=containerd-1.6
config MINIMUM_IP_TARGET=1 IP_COOLDOWN_PERIOD=0
start pods web 1 on node-1
maybe at 0s kube roll web 1
maybe at 40s ec2 stale by=40s
maybe at 1m7s node-1 reboot
maybe at 1m50s node-1 restart
finally converges within 20m
`,
	// A daemon without records waited for metadata, asked it less and less often, and pods lacked their rules for a quarter of a minute longer.
	"metadata speaks again": `
cluster version=1
at 0s kube create db 1
at 0s kube scale db 10
maybe at 3s node-1 lose-records
maybe at 3s imds silent for=1m26s
maybe at 3s node-1 kill
maybe at 3s node-1 flush-rules
at 1m33s within 15m expect kube pods.unready == 0
finally converges within 20m
`,
	// Metadata and EC2's first answer lacked an address; its cool-down ended before the second one, and the next pod was given it.
	"freed in doubt": `
cluster nodes=1 type=m5.large subnet=10.0.50.0/24 runtime=containerd
config  WARM_IP_TARGET=1 MINIMUM_IP_TARGET=6 MAX_ENI=1
start   pods web 5 on node-1
at 1m   ec2 unassign web-0
at 108s node-1 kill
at 140s pod web-0 delete
at 3m   kube roll web 3
finally converges within 6m
`,
}

func TestFoundScriptsHold(t *testing.T) {
	for name, text := range found {
		t.Run(name, func(t *testing.T) {
			f := must.Get(scn.Parse(name, []byte(text)))(t)
			c := must.Get(sim.Check(f))(t)
			for seed := uint64(1); seed <= 10; seed++ {
				w := must.Get(virtual.Open(c, seed, nil))(t)
				r := must.Get(sim.NewRun(f, w, "sim"))(t)
				if v := r.Finish(nil); !v.Held() {
					t.Errorf("seed %d: %v\n%s", seed, v.Violations, v.Story)
				}
			}
		})
	}
}

// An address that a third party takes from a node, and that EC2 gives to another one, is in two live namespaces: I1 is
// judged across nodes.
func TestOneAddressOnTwoNodesIsSeen(t *testing.T) {
	f := must.Get(scn.Parse("two nodes", []byte(`
cluster nodes=2 type=m5.large subnet=10.0.50.0/28
config  WARM_IP_TARGET=1 MINIMUM_IP_TARGET=1 MAX_ENI=1
start   pods web 1 on node-1
at 1s   node-1 hold
at 2s   ec2 unassign web-0
at 10s  kube create more 8 node=2
at 2m   kube roll more 8
at 5m   expect kube pods.total >= 1
`)))(t)
	c := must.Get(sim.Check(f))(t)
	w := must.Get(virtual.Open(c, 1, nil))(t)
	r := must.Get(sim.NewRun(f, w, "sim"))(t)
	r.Finish(nil)
	if w.Audit().Total(judge.I1) == 0 {
		t.Fatalf("no break of I1 was seen: %v\n%s", w.Audit().Violations(), w.Story())
	}
}
