package judge

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func TestCatalogue(t *testing.T) {
	all := Catalogue()
	if len(all) != int(ids)-1 || len(Phrases()) != len(all) {
		t.Fatalf("expected an entry for each of %d invariants, found %d", ids-1, len(all))
	}
	for i, v := range all {
		if v.ID != ID(i+1) || v.ID.String() != fmt.Sprintf("I%d", i+1) {
			t.Errorf("entry %d is %v", i, v.ID)
		}
		if found, ok := ByPhrase(v.Phrase); !ok || found != v || Phrases()[i] != v.Phrase {
			t.Errorf("%v is not found by its phrase %q", v.ID, v.Phrase)
		}
		if v.Doc == "" || v.Rule == "" || v.Needs == 0 || v.When.String() == "?" || (v.When == Repaired) != (v.Bound > 0) {
			t.Errorf("%v is incomplete: %+v", v.ID, v)
		}
		for _, rule := range strings.Fields(v.Rule) {
			if !strings.Contains("2ABCDEFGHIJKL", rule) {
				t.Errorf("%v names rule %q, which does not exist", v.ID, rule)
			}
		}
	}
	if _, ok := ByPhrase("all is well"); ok {
		t.Error("expected no invariant for an unknown phrase")
	}
	if When(9).String() != "?" {
		t.Error("expected no name of an unknown When")
	}
}

// Whoever is cloned and whoever is the clone, neither sees what the other does.
func TestCloneIsIndependent(t *testing.T) {
	a := started(Config{Budget: 1})
	a.Input(0, 1, add(1, web))
	a.Effects(0, 1, []ipam.Effect{put(1, assigned(addr1, web))})
	a.Given(0, 1, web, addr1, "")
	a.Released(sec, 1, web, addr1)
	a.DelResult(0, 1, api, false, "try again")
	c := healthy()
	c.Pods[0].Fault = "no route"
	a.Judge(0, c)
	state := func(a *Auditor) string {
		n := a.nodes[1]
		return fmt.Sprint(a.calls, a.Violations(), n.running, n.gate, n.failing, n.faults, n.up, n.coolDown,
			n.contract.Outstanding(), n.contract.Open(), n.contract.rows, n.contract.holders, n.contract.stores[0].ended)
	}
	shake := func(a *Auditor) {
		a.EC2Call(2*sec, 1)
		a.EC2Call(2*sec, 1)
		a.Input(2*sec, 1, saved(1))
		a.Effects(2*sec, 1, []ipam.Effect{wire(1, web), &ipam.Look{ID: 7}})
		a.Input(2*sec, 1, del(2, api))
		a.Given(2*sec, 1, api, addr1, "veth")
		a.Released(3*sec, 1, api, addr1)
		a.AddressUnassigned(3*sec, 1, addr2, true, "default/web")
		a.DelResult(3*sec, 1, api, true, "")
		a.DelResult(3*sec, 1, web, false, "try again")
		a.Judge(3*sec, healthy())
		a.Died(4*sec, 1)
		a.Started(5*sec, 1)
	}
	before := state(a)
	b := a.Clone()
	shake(b)
	if got := state(a); got != before {
		t.Errorf("the clone changed its original\nfrom %s\nto   %s", before, got)
	}
	d := b.Clone()
	after := state(b)
	shake(a)
	if got := state(d); got != after {
		t.Errorf("the original changed a clone's clone\nfrom %s\nto   %s", after, got)
	}
	if state(a) != state(b) {
		t.Errorf("the same edges: expected the same auditors, found\n%s\n%s", state(a), state(b))
	}
	shake(d)
	if got := state(b); got != after {
		t.Errorf("a clone's clone changed the clone\nfrom %s\nto   %s", after, got)
	}
}

// The auditor is pure, and knows a node, its plans and EC2's model alone. The witness tells the timeline, and is told of the mutant that plays.
func TestImports(t *testing.T) {
	files := must.Get(os.ReadDir("."))(t)
	allowed := []string{"cmp", "fmt", "maps", "math", "net/netip", "slices", "strconv", "strings", "time", "github.com/enilab/enilab/fakes/ec2", "github.com/enilab/enilab/impl/dataplane", "github.com/enilab/enilab/impl/ipam"}
	further := map[string][]string{"witness.go": {"github.com/enilab/enilab/sim/mutants", "github.com/enilab/enilab/sim/timeline"}}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly))(t)
		for _, i := range parsed.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(append(further[f.Name()], allowed...), path) {
				t.Errorf("%s imports %s: expected only %v", f.Name(), path, allowed)
			}
		}
	}
}

// cycle is a full ADD and DEL of one pod as a world tells it.
type cycle struct {
	atts  []ipam.Attachment
	effs  []ipam.Effect
	req   ipam.Req
	id    ipam.ID
	seq   uint64
	now   time.Duration
	puts  []ipam.Row
	saves [2]ipam.Save
	plans [2]ipam.Apply
	says  [2]ipam.Reply
}

// edges counts the calls of one cycle.
const edges = 18

func (y *cycle) run(a *Auditor, node, i int) {
	att, addr := y.atts[i%len(y.atts)], y.puts[i%len(y.puts)].Address
	one := func(e ipam.Effect) []ipam.Effect { y.effs[0] = e; return y.effs[:1] }
	y.now += time.Minute
	row := y.puts[i%len(y.puts) : i%len(y.puts)+1]
	for k := range 2 {
		y.req, y.id, y.seq = y.req+1, y.id+1, y.seq+1
		if k == 0 {
			row[0] = ipam.Row{Address: addr, State: ipam.Assigned, Att: att}
			a.Input(y.now, node, ipam.Add{Req: y.req, Att: att})
			y.says[k] = ipam.Reply{Req: y.req, Verb: ipam.VerbAdd, Att: att, Address: addr}
		} else {
			row[0] = ipam.Row{Address: addr, State: ipam.Cooling, Att: att}
			a.Input(y.now, node, ipam.Del{Req: y.req, Att: att})
			y.says[k] = ipam.Reply{Req: y.req, Verb: ipam.VerbDel, Att: att}
		}
		y.saves[k] = ipam.Save{Seq: y.seq, Put: row}
		a.Effects(y.now, node, one(&y.saves[k]))
		a.Input(y.now, node, ipam.Saved{Seq: y.seq})
		y.plans[k] = ipam.Apply{ID: y.id, Lane: ipam.Lane{Kind: ipam.PodLane, Att: att}}
		a.Effects(y.now, node, one(&y.plans[k]))
		a.Input(y.now, node, ipam.Applied{ID: y.id})
		a.Effects(y.now, node, one(&y.says[k]))
		if k == 0 {
			a.Configured(y.now, node, addr, att, 1, "")
			a.Given(y.now, node, att, addr, "")
		} else {
			a.Released(y.now, node, att, addr)
			a.DelResult(y.now, node, att, true, "")
		}
	}
	a.Input(y.now, node, nil)
	a.Effects(y.now, node, nil)
}

// newCycle prepares sandboxes with full container IDs, as a runtime has them.
func newCycle() *cycle {
	y := &cycle{effs: make([]ipam.Effect, 1)}
	addr := addr1
	for i := range 46 {
		y.atts = append(y.atts, ipam.Attachment{Network: "aws-cni", ContainerID: fmt.Sprintf("%064x", i*7919), IfName: "eth0"})
		y.puts = append(y.puts, ipam.Row{Address: addr})
		addr = addr.Next()
	}
	return y
}

func TestCycleHolds(t *testing.T) {
	a, y := started(Config{}), newCycle()
	for i := range 500 {
		y.run(a, 1, i)
	}
	if v, broken := a.First(); broken {
		t.Errorf("expected nothing broken, found %v", v)
	}
}

// BenchmarkCycle is a full ADD and DEL; ns/edge is one call of the auditor.
func BenchmarkCycle(b *testing.B) {
	a, y := started(Config{}), newCycle()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		y.run(a, 1, i)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
	if v, broken := a.First(); broken {
		b.Fatal(v)
	}
}

// BenchmarkFleet is the same over 500 nodes in turn: nothing is in the processor's cache.
func BenchmarkFleet(b *testing.B) {
	const nodes = 500
	a := New(Config{Nodes: nodes})
	ys := make([]*cycle, nodes)
	for i := range ys {
		ys[i] = newCycle()
		a.Started(0, i+1)
		a.Input(0, i+1, ipam.Start{Settings: ipam.Defaults()})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ys[i%nodes].run(a, i%nodes+1, i/nodes)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
}

// BenchmarkJudge is a snapshot of a node with 46 pods on 4 ENIs.
func BenchmarkJudge(b *testing.B) {
	a, y := started(Config{}), newCycle()
	c := &Snapshot{Node: 1, Up: true, Cloud: make([]CloudENI, 4)}
	for i := range y.puts {
		eni := &c.Cloud[i/14]
		eni.ID, eni.Attached = "eni-"+strconv.Itoa(i/14), true
		eni.Secondaries = append(eni.Secondaries, y.puts[i].Address)
		c.Rows = append(c.Rows, ipam.Row{Address: y.puts[i].Address, State: ipam.Assigned, Att: y.atts[i], ENI: eni.ID})
		c.Pods = append(c.Pods, PodSnapshot{Att: y.atts[i], Address: y.puts[i].Address, Ours: true})
	}
	b.ReportAllocs()
	for b.Loop() {
		a.Judge(0, c)
	}
	if v, broken := a.First(); broken {
		b.Fatal(v)
	}
}

// BenchmarkClone forks the auditor of 500 nodes and changes one of them.
func BenchmarkClone(b *testing.B) {
	a := New(Config{Nodes: 500})
	for i := 1; i <= 500; i++ {
		a.Started(0, i)
		a.Input(0, i, ipam.Start{Settings: ipam.Defaults()})
		y := newCycle()
		for k := range 46 {
			y.run(a, i, k)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c := a.Clone()
		c.Input(time.Hour, 1, nil)
	}
}
