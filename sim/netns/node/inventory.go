package node

import (
	"slices"
)

// Inventory is what there is in a node, as sorted text that is the same for the same state: no indexes, process IDs or times.
type Inventory struct {
	Links      []string // name, kind, alias
	Namespaces []string // network namespaces besides the node's own, and who keeps them
	Rules      []string // but the kernel's own
	Routes     []string // but those of the kernel's local table
	Tables     []string // nftables
	Mounts     []string // mount point and type
	Processes  []string // command lines, the helper left out
	Files      []string // below /run/aws-node, /run/netns, /var/lib/aws-node and /var/lib/cni
}

// Diff is one line for everything that is in only one of two inventories: "-" what only i has, "+" what only j has.
func (i Inventory) Diff(j Inventory) []string {
	var out []string
	a, b := i.parts(), j.parts()
	for k, p := range a {
		out = append(out, diff(p.noun, p.list, b[k].list)...)
	}
	return out
}

type part struct {
	noun string
	list []string
}

func (i *Inventory) parts() []part {
	return []part{{"link", i.Links}, {"namespace", i.Namespaces}, {"rule", i.Rules}, {"route", i.Routes}, {"nftables table", i.Tables},
		{"mount", i.Mounts}, {"process", i.Processes}, {"file", i.Files}}
}

// diff merges two sorted lists, in which the same text may stand more than once.
func diff(noun string, a, b []string) (out []string) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out = append(out, "- "+noun+" "+a[0])
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out = append(out, "+ "+noun+" "+b[0])
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return out
}
