package models

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/judge"
)

type clockOnly struct {
	World
	now time.Duration
}

func (c *clockOnly) Clock() time.Duration { return c.now }

type quiet struct{ Machine }

func (quiet) CloseFlow(cri.Truth) {}

// A flow may be silent for as long as a client waits, and not longer; a reset cuts it at once; an answer begins the wait anew.
func TestFlowsAreJudged(t *testing.T) {
	const deaf, reset = "no route", "reset"
	for name, c := range map[string]struct {
		answers []string // one every ten seconds
		cut     int
	}{
		"answers":         {[]string{"", "", "", "", ""}, 0},
		"silent for 30 s": {[]string{"", deaf, deaf, deaf, deaf, ""}, 0},
		"silent for 40 s": {[]string{"", deaf, deaf, deaf, deaf, deaf}, 1},
		"twice for 20 s":  {[]string{deaf, deaf, deaf, "", deaf, deaf, deaf}, 0},
		"reset":           {[]string{"", reset}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &clockOnly{}
			h := &Host{World: w, Auditor: judge.New(judge.Config{Nodes: 1})}
			f := flow{silent: Never}
			var all Flows
			for _, why := range c.answers {
				all.heard(w.now, &f, Answer{Why: why, Cut: why == reset}, quiet{}, 1, h.Auditor)
				w.now += 10 * time.Second
			}
			if v := h.Auditor.Violations(); all.cut != c.cut || len(v) != c.cut || (f.silent == cut) != (c.cut == 1) {
				t.Errorf("%d cut, violations %v: expected %d", all.cut, v, c.cut)
			}
		})
	}
}

// Every pod asks once and is asked once, every ENI of a node asks every other, every node every other; nobody asks himself.
func TestPairs(t *testing.T) {
	var places []Place
	for node := int32(1); node <= 3; node++ {
		for i, eni := range []string{"a", "a", "b", "c"} {
			places = append(places, Place{Node: node, ENI: eni, Address: address(byte(node), byte(i+1))})
		}
	}
	asks, asked, enis, nodes := map[Place]int{}, map[Place]int{}, map[[2]string]bool{}, map[[2]int32]bool{}
	for _, p := range Pairs(places) {
		if p.From == p.To {
			t.Errorf("%v asks himself", p.From)
		}
		asks[p.From]++
		asked[p.To]++
		nodes[[2]int32{p.From.Node, p.To.Node}] = true
		if p.From.Node == 1 && p.To.Node == 1 {
			enis[[2]string{p.From.ENI, p.To.ENI}] = true
		}
	}
	if len(asks) != len(places) || len(asked) != len(places) || len(nodes) != 9 || len(enis) != 7 { // a also asks a
		t.Errorf("%d ask, %d are asked, %d pairs of nodes, %d of ENIs: expected %d, %d, 9, 7", len(asks), len(asked), len(nodes), len(enis), len(places), len(places))
	}
	if len(Pairs(places[:1])) != 0 {
		t.Error("one pod alone asks somebody")
	}
}

func address(node, i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, node, i}) }
