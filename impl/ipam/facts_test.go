package ipam_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

var ownRow = ipam.Key{Address: netip.MustParseAddr("10.0.0.4")}

// silenced is a node with a second ENI whose daemon is started anew while instance metadata does not answer.
func silenced(t *testing.T, spoil func(w *world, r *ipam.Row)) *world {
	w := ready(t, ipam.Sound())
	w.up("c0", "web-0")
	w.live(time.Minute)
	w.silent = true
	r := w.rows[ownRow]
	if r.Node == nil || len(r.Node.ENIs) != 2 {
		t.Fatalf("the row of the node's own address has the facts %+v, expected two ENIs", r.Node)
	}
	if spoil != nil {
		f := *r.Node
		f.ENIs = slices.Clone(f.ENIs)
		r.Node = &f
		spoil(w, &r)
		w.rows[ownRow] = r
	}
	w.start()
	w.live(10 * time.Second)
	return w
}

// TestServesFromItsRecords: what is on record and free is given, nothing is changed at EC2, and what metadata says later is heard.
func TestServesFromItsRecords(t *testing.T) {
	w := silenced(t, nil)
	var v ipam.View
	if w.node.View(&v); !v.Serving || v.Surveyed || v.Free == 0 || len(v.ENIs) != 2 || !strings.Contains(strings.Join(v.Reasons, ""), "metadata") {
		t.Fatalf("metadata is silent: %+v", v)
	}
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok {
				t.Errorf("%v at EC2 while metadata is silent", c.Action)
			}
		}
	}
	free := v.Free
	for i := range free {
		w.up("s"+string(rune('a'+i)), "silent-"+string(rune('a'+i)))
	}
	req := w.add(w.pod("more", "more"))
	w.live(time.Minute)
	if r := w.replies[req]; r == nil || r.Err == nil || !strings.Contains(r.Err.Text, "until it answers") {
		t.Errorf("an ADD for which nothing on record is free: %+v", r)
	}
	w.tap, w.silent = nil, false
	w.live(time.Minute)
	w.up("then", "then")
	if w.node.View(&v); !v.Surveyed || len(v.Reasons) > 0 {
		t.Errorf("metadata has answered: %+v", v)
	}
	w.tidy()
}

// TestAnIntentWaitsForMetadata: what an earlier daemon had begun at EC2 goes on when it is known again where.
func TestAnIntentWaitsForMetadata(t *testing.T) {
	w := silenced(t, func(w *world, _ *ipam.Row) {
		r := ipam.Row{Intent: &ipam.Intent{Token: "enilab-1", Stage: ipam.Tombstoned, Doing: ipam.DeleteENI, ENI: ipam.ENI{ID: "eni-9"}}}
		w.rows[r.Key()] = r
		w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-9", MAC: "02:00:00:00:00:99", Status: "available", Owner: instance}})
	})
	w.live(5 * time.Minute)
	if w.eni("eni-9") == nil {
		t.Error("an ENI was deleted while metadata is silent")
	}
	w.silent = false
	w.live(5 * time.Minute)
	if w.eni("eni-9") != nil {
		t.Error("the ENI is still there, and metadata has answered")
	}
}

// TestFactsThatCannotBe: then the daemon waits for metadata, as without any.
func TestFactsThatCannotBe(t *testing.T) {
	for name, spoil := range map[string]func(w *world, r *ipam.Row){
		"none":                func(_ *world, r *ipam.Row) { r.Node = nil },
		"empty":               func(_ *world, r *ipam.Row) { r.Node = &ipam.Facts{} },
		"no instance":         func(_ *world, r *ipam.Row) { r.Node.Instance.ID = "" },
		"no ENI":              func(_ *world, r *ipam.Row) { r.Node.ENIs = nil },
		"a device below 0":    func(_ *world, r *ipam.Row) { r.Node.ENIs[1].Device = -1 },
		"a device beyond all": func(_ *world, r *ipam.Row) { r.Node.ENIs[1].Device = 1 << 40 },
		"one ENI twice":       func(_ *world, r *ipam.Row) { r.Node.ENIs[1] = r.Node.ENIs[0] },
		"another primary":     func(_ *world, r *ipam.Row) { r.Node.Instance.PrimaryMAC = "02:00:00:00:00:77" },
		"no subnet":           func(_ *world, r *ipam.Row) { r.Node.ENIs[0].CIDR = netip.Prefix{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := silenced(t, spoil)
			var v ipam.View
			if w.node.View(&v); v.Serving {
				t.Fatalf("it serves: %+v", v)
			}
			w.silent = false
			w.live(time.Minute)
			if w.node.View(&v); !v.Serving || w.rows[ownRow].Node == nil || len(w.rows[ownRow].Node.ENIs) != 2 {
				t.Errorf("metadata has answered: %+v, on record %+v", v, w.rows[ownRow].Node)
			}
		})
	}
}

// TestFactsEndWithTheBoot: what was attached before may be attached no more.
func TestFactsEndWithTheBoot(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.live(time.Minute)
	rows := w.stored()
	w.node = must.Get(ipam.New(w.policy))(t)
	w.contract.Reset()
	w.flight, w.saves, w.silent = nil, [2][]*ipam.Save{}, true
	w.step(ipam.Start{Boot: "c", Rebooted: true, Booted: w.now, Seed: 9, Daemon: self, Version: w.version, Wall: bootWall, Settings: w.set, Rows: rows})
	w.live(time.Minute)
	var v ipam.View
	if w.node.View(&v); v.Serving {
		t.Errorf("facts of another boot are believed: %+v", v)
	}
}

// TestAnENIWithoutItsLink is on record, and detached meanwhile: nothing of it is given away.
func TestAnENIWithoutItsLink(t *testing.T) {
	w := silenced(t, func(w *world, r *ipam.Row) {
		gone := w.eni(r.Node.ENIs[1].ID)
		w.call(&ipam.Call{Action: ipam.DetachENI, ENI: gone.ID, Attachment: gone.Attachment})
	})
	var v ipam.View
	if w.node.View(&v); !v.Serving || len(v.ENIs) != 1 || v.ENIs[0].Device != 0 {
		t.Errorf("one ENI has its link: %+v", v)
	}
}

// TestAnotherInstancesFacts are believed until metadata speaks.
func TestAnotherInstancesFacts(t *testing.T) {
	w := silenced(t, func(_ *world, r *ipam.Row) { r.Node.Instance.ID = "i-other" })
	b, a := w.up("c1", "web-1")
	w.silent = false
	w.live(2 * time.Minute)
	var v ipam.View
	if w.node.View(&v); !v.Serving || !v.Surveyed || w.marks[ipam.CheckpointUnread] != 1 || w.rows[ownRow].Node.Instance.ID != instance {
		t.Errorf("metadata names another instance than the records: %+v", v)
	}
	if r, ok := w.node.Find(b.att); !ok || r.Address != a {
		t.Errorf("a pod that runs has lost its row: %+v", r)
	}
	w.tidy()
}
