package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// remainsLimit is how long what is left of pods may take to go: kubelet and the daemon look once a minute for what
// nobody asked them to remove.
const remainsLimit = 3 * time.Minute

// awaitNothingLeft waits until a node has nothing of pods that are gone.
func (b *bed) awaitNothingLeft(ctx context.Context, n *cluster.Node, gone []netip.Addr) {
	GinkgoHelper()
	what := fmt.Sprintf("nothing to be left on %s of %d pods that are gone", n.Name, len(gone))
	await(ctx, remainsLimit, what, func(ctx context.Context) (string, error) { return b.remains(ctx, n, gone) })
}

// remains says what a node has of pods that are gone: rules, routes, proxied addresses, allocations, DELs that wait;
// and host veths, network namespaces and results of CNI calls beyond those of the pods that it runs. Nothing is "".
func (b *bed) remains(ctx context.Context, n *cluster.Node, gone []netip.Addr) (string, error) {
	var out []string
	for _, command := range []string{"ip rule", "ip route show table all", "ip neigh show proxy"} {
		text, err := n.Exec(ctx, strings.Fields(command)...)
		if err != nil {
			return "", err
		}
		out = append(out, linesWith(text, gone)...)
	}
	allocated, err := allocations(n)
	if err != nil {
		return "", err
	}
	for _, a := range gone {
		if slices.Contains(allocated, a) {
			out = append(out, a.String()+" is on record as a pod's")
		}
	}
	if waiting := glob(n, "run/aws-node/del/*.json"); waiting > 0 {
		out = append(out, fmt.Sprintf("%d DELs wait for the daemon", waiting))
	}
	pods, err := b.networked(ctx, n)
	if err != nil {
		return "", err
	}
	links, err := n.Exec(ctx, "ip", "-o", "link", "show", "type", "veth")
	if err != nil {
		return "", err
	}
	for _, each := range []struct {
		what  string
		count int
	}{
		{"host veths", len(hostVeth.FindAllString(links, -1))}, {"network namespaces", glob(n, "run/netns/cni-*")},
		{"results of ADD", glob(n, "var/lib/cni/results/aws-cni-*")}, {"allocations", len(allocated)},
	} {
		if each.count != pods {
			out = append(out, fmt.Sprintf("%d %s with %d pods", each.count, each.what, pods))
		}
	}
	return strings.Join(out, "; "), nil
}

// word is what an address is in the output of ip.
var word = regexp.MustCompile(`[0-9.]+`)

func linesWith(text string, addrs []netip.Addr) (out []string) {
	wanted := map[string]bool{}
	for _, a := range addrs {
		wanted[a.String()] = true
	}
	for _, line := range strings.Split(text, "\n") {
		for _, w := range word.FindAllString(line, -1) {
			if wanted[w] {
				out = append(out, strings.TrimSpace(line))
				break
			}
		}
	}
	return out
}

// allocations are the addresses that the daemon's record says pods have.
func allocations(n *cluster.Node) (out []netip.Addr, err error) {
	raw, err := os.ReadFile(filepath.Join(n.Root(), "run/aws-node/ipam.json"))
	if err != nil {
		return nil, err
	}
	var record struct {
		Allocations []struct {
			IPv4 netip.Addr `json:"ipv4"`
		} `json:"allocations"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return nil, fmt.Errorf("the record of allocations of %s: %w", n.Name, err)
	}
	for _, a := range record.Allocations {
		out = append(out, a.IPv4)
	}
	return out, nil
}

// networked is how many pods with a network of their own run on a node.
func (b *bed) networked(ctx context.Context, n *cluster.Node) (count int, err error) {
	all, err := b.pods(ctx, "", "")
	for i := range all {
		p := &all[i]
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.Spec.NodeName == n.Name && !p.Spec.HostNetwork && !ended {
			count++
		}
	}
	return count, err
}

// hostVeth is the name of a pod's link on its node: of its ENIs' it is eth and a number.
var hostVeth = regexp.MustCompile(`(?m)^\d+: eni[0-9a-f]+@`)

func glob(n *cluster.Node, pattern string) int {
	list, _ := filepath.Glob(filepath.Join(n.Root(), pattern)) // the pattern is well-formed
	return len(list)
}
