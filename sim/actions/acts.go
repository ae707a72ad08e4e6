// Package actions is what every world knows of the actions of a run: what has become of each ([Log]), which of them the
// next daemon's start ends ([Starters]), how a timeline tells them; and it reads metrics from the models.
package actions

import (
	"net/netip"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// Describe is an action as a story tells it.
func Describe(a *verb.Act) string {
	s := a.Subject.String() + " " + a.Verb
	for _, k := range []string{"cri", "to", "part", "call", "when", "valid", "name", "count", "what", "seed", "times", "clock", "for", "by", "pod"} {
		if v := a.Text(k); v != "" {
			s += " " + v
		}
	}
	for _, k := range a.Keys {
		s += " " + k.Key + "=" + k.Value
	}
	return strings.TrimSpace(s)
}

// AddressIn finds pods' addresses in the model of the API server.
func AddressIn(k *kube.Cluster) func(pod string) netip.Addr {
	return func(pod string) netip.Addr {
		p, _ := k.Find(pod)
		return p.Address
	}
}

// MeasureKube reads a metric of the API server.
func MeasureKube(c *kube.Cluster, metric string) (int64, bool) {
	switch metric {
	case "pods.ready":
		return int64(c.Ready()), true
	case "pods.made":
		return int64(c.Made()), true
	case "pods.unready":
		return int64(c.Len() - c.Ready()), true
	}
	return int64(c.Len()), true
}

// Ledger is how often each action was called.
func Ledger(c *ec2.Cloud) []ec2.Count {
	out := make([]ec2.Count, ec2.ActionCount)
	for a := range out {
		out[a] = c.Calls(ec2.Action(a))
	}
	return out
}

// MeasureEC2 reads a metric of EC2; calls count from a ledger taken before.
func MeasureEC2(c *ec2.Cloud, base []ec2.Count, metric string) (int64, bool) {
	switch metric {
	case "enis.available":
		return int64(c.CountENIs(ec2.Available)), true
	case "enis.total":
		return int64(len(c.AllENIs())), true
	}
	if n, of, ok := sim.SubnetMetric(metric); ok {
		return measureSubnet(c, n, of)
	}
	name, ok := strings.CutPrefix(metric, "calls.")
	refused, failed := strings.CutPrefix(metric, "failed.")
	if !ok && !failed {
		return 0, false
	}
	var sum ec2.Count
	for a := range base {
		n := minus(c.Calls(ec2.Action(a)), base[a])
		switch ec2.Action(a).String() {
		case name:
			return int64(n.Total), true
		case refused:
			return int64(n.Failed), true
		}
		if name != mutating || ec2.Action(a).Mutates() {
			sum = plus(sum, n)
		}
	}
	if name == mutating {
		return int64(sum.Total), true
	}
	return outcome(sum, name)
}

// mutating is what the metric of requests that change something is called after.
const mutating = "mutating"

// measureSubnet reads a metric of one of the cluster's subnets, from 1.
func measureSubnet(c *ec2.Cloud, n int, of string) (int64, bool) {
	subnets := c.Subnets()
	if n > len(subnets) {
		return 0, false
	}
	switch id := subnets[n-1].ID; of {
	case "free":
		return int64(c.FreeAddresses(id)), true
	case "enis":
		var count int64
		for _, e := range c.AllENIs() {
			count += Flag(e.Subnet == id)
		}
		return count, true
	}
	return 0, false
}

// MeasureInstance reads a metric of an instance from what EC2 knows of it and of its requests, from the first one on.
func MeasureInstance(c *ec2.Cloud, i ec2.InstanceID, metric string) (int64, bool) {
	if n, of, ok := sim.SubnetMetric(metric); ok && of == "enis" && n <= len(c.Subnets()) {
		var count int64
		for _, id := range c.AttachedENIs(i) {
			e, _ := c.ENI(id)
			count += Flag(e.Subnet == c.Subnets()[n-1].ID)
		}
		return count, true
	}
	if metric == "enis.other-groups" {
		return int64(len(judge.OtherGroups(c, i))), true
	}
	return measureCalls(c, i, metric)
}

func measureCalls(c *ec2.Cloud, i ec2.InstanceID, metric string) (int64, bool) {
	name, ok := strings.CutPrefix(metric, "calls.")
	if !ok {
		return 0, false
	}
	if name == "denied" {
		denied := 0
		for _, r := range c.LedgerRows() {
			if r.Node == i && r.Code == "UnauthorizedOperation" {
				denied += r.Calls
			}
		}
		return int64(denied), true
	}
	var sum ec2.Count
	for a := range ec2.ActionCount {
		sum = plus(sum, c.CallsBy(i, a))
	}
	return outcome(sum, name)
}

// outcome is the part of a count that a metric is called after.
func outcome(n ec2.Count, name string) (int64, bool) {
	switch name {
	case "throttled":
		return int64(n.Throttled), true
	case "failed":
		return int64(n.Failed), true
	case "lost":
		return int64(n.Lost), true
	}
	return int64(n.Total), name == "total"
}

func plus(a, b ec2.Count) ec2.Count {
	return ec2.Count{Total: a.Total + b.Total, OK: a.OK + b.OK, Throttled: a.Throttled + b.Throttled, Failed: a.Failed + b.Failed, Lost: a.Lost + b.Lost}
}

func minus(a, b ec2.Count) ec2.Count {
	return ec2.Count{Total: a.Total - b.Total, OK: a.OK - b.OK, Throttled: a.Throttled - b.Throttled, Failed: a.Failed - b.Failed, Lost: a.Lost - b.Lost}
}
