package main

import (
	"maps"
	"slices"
)

// breakage is a datapath in which something fundamental is missing: specs that stay green say nothing of it.
type breakage struct{ doc, script string }

// broken are run on every node, before the first spec.
var broken = map[string]breakage{
	"no-udp": {"datagrams of pods are dropped, and with them DNS", "iptables -I FORWARD -p udp -j DROP"},
	"no-node-to-node": {"pods reach those of their own node alone",
		"iptables -I FORWARD -i eth+ -o eni+ -m conntrack --ctstate NEW -j DROP"},
	"masquerade": {"pods see the node's address in place of each other's",
		"iptables -t nat -I POSTROUTING -o eni+ -j MASQUERADE"},
	"no-host-ports":  {"hostPorts lead nowhere", "iptables -t nat -N CNI-HOSTPORT-DNAT || true; iptables -t nat -I CNI-HOSTPORT-DNAT -j RETURN"},
	"no-way-to-pods": {"nodes, kubelet among them, do not reach their pods", "iptables -I OUTPUT -o eni+ -p tcp -m conntrack --ctstate NEW -j REJECT"},
}

func breakages() []string { return slices.Sorted(maps.Keys(broken)) }
