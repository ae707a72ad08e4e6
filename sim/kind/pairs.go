package kind

import (
	"net/netip"
	"os"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/vpc"
)

// measurePairs counts the pairs of pods that are tried, or those whose pings stay without an answer.
func (w *World) measurePairs(metric string) (int64, bool) {
	var places []models.Place
	for _, m := range w.members.living() {
		list, err := m.runtime.sandboxes(w.ctx)
		if err != nil {
			return 0, false
		}
		for i := range list {
			s := &list[i]
			if !s.runs() || !s.Address.IsValid() {
				continue
			}
			p := models.Place{Node: m.no, Address: s.Address}
			p.Pod.Name, p.Pod.ID = s.Pod, m.node.Root()+s.Netns // where its namespace is
			w.c.Cloud(func(_ time.Duration, c *ec2.Cloud) {
				eni, _ := c.HasAddress(m.node.Instance, s.Address)
				p.ENI = string(eni)
			})
			places = append(places, p)
		}
	}
	pairs := models.Pairs(places)
	if metric == "pairs.tried" {
		return int64(len(pairs)), true
	}
	var apart int64
	for i := range pairs {
		if !answers(w.c.Network(), &pairs[i]) {
			apart++
		}
	}
	return apart, true
}

// answers says whether a pod answers another one's ping.
func answers(n *vpc.Network, p *models.Pair) bool {
	ns, err := os.Open(p.From.Pod.ID)
	if err != nil {
		return false
	}
	defer ns.Close()
	answered, err := n.PingFrom(ns, []netip.Addr{p.To.Address}, doubtPatience)
	return err == nil && answered[0]
}
