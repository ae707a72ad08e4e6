package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// breakage is a datapath in which something fundamental is missing: specs that stay green say nothing of it.
type breakage struct{ doc, table, chain, rule string }

// broken are rules of iptables that are first on every node before the first spec.
var broken = map[string]breakage{
	"no-udp":          {"datagrams of pods are dropped, and with them DNS", "filter", "FORWARD", "-p udp -j DROP"},
	"no-node-to-node": {"pods reach those of their own node alone", "filter", "FORWARD", "-i eth+ -o eni+ -m conntrack --ctstate NEW -j DROP"},
	"masquerade":      {"pods see the node's address in place of each other's", "nat", "POSTROUTING", "-o eni+ -j MASQUERADE"},
	"no-host-ports":   {"hostPorts lead nowhere", "nat", "CNI-HOSTPORT-DNAT", "-j RETURN"},
	"no-way-to-pods":  {"nodes, kubelet among them, do not reach their pods", "filter", "OUTPUT", "-o eni+ -p tcp -m conntrack --ctstate NEW -j REJECT"},
}

// mark is the rule's comment.
const mark = "enilab-broken"

// install is a shell script. The chain may be one that a plugin makes with its first pod.
func (b *breakage) install() string {
	return fmt.Sprintf("iptables -t %[1]s -N %[2]s 2>/dev/null || true; iptables -t %[1]s -I %[2]s -m comment --comment %s %s", b.table, b.chain, mark, b.rule)
}

// packets is a shell script that prints how many packets have met the rule.
func (b *breakage) packets() string {
	return fmt.Sprintf("iptables -t %s -L %s -vnx | awk '/%s/ { n += $1 } END { print n + 0 }'", b.table, b.chain, mark)
}

// struck says whether a packet met the rule on any node: a datapath that was not broken proves nothing.
func (b *breakage) struck(ctx context.Context, c *cluster) (bool, error) {
	total := 0
	for _, node := range c.nodes {
		out, err := inNode(ctx, node, b.packets())
		if err != nil {
			return false, err
		}
		n, err := strconv.Atoi(out)
		if err != nil {
			return false, fmt.Errorf("packets of %s on %s: %w", mark, node, err)
		}
		total += n
	}
	say("%d packets met what is broken", total)
	return total > 0, nil
}

func breakages() []string { return slices.Sorted(maps.Keys(broken)) }
