package sim

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/scn"
)

// plan is what a file's lines will have done, whatever happens: what an action can meet at all.
type plan struct {
	pods     map[string]int  // workload: the most pods that it ever has
	sets     map[string]bool // statefulsets
	held     map[int]bool    // nodes whose daemon some line keeps down; 0 is all
	hung     map[string]bool // pods of which some line hangs a process
	sockets  bool            // some line has the runtime's socket be another one than the right one
	versions map[int]bool    // that some line exchanges daemon or plugin for
	settles  bool            // the file gives time to settle
}

// foresee collects the plan.
func (c *checker) foresee(f *scn.File) {
	p := plan{pods: map[string]int{}, sets: map[string]bool{}, held: map[int]bool{}, hung: map[string]bool{}, versions: map[int]bool{c.cluster.Version: true}}
	most := func(name string, n int) { p.pods[name] = max(p.pods[name], n) }
	for i := range f.Lines {
		switch s := f.Lines[i].Stmt.(type) {
		case *scn.Finally:
			p.settles = true
		case *scn.Start:
			if n := s.Count; s.Target.Kind == scn.AllNodes {
				most(s.Name, n*c.cluster.Nodes)
			} else {
				most(s.Name, n)
			}
		case *scn.At:
			if s.Action == nil {
				continue
			}
			act, err := Bind(s.Action)
			if err != nil {
				continue // said elsewhere
			}
			switch act.Verb {
			case "create", "scale":
				most(act.Text("name"), act.Int("count"))
				p.sets[act.Text("name")] = p.sets[act.Text("name")] || act.Text("kind") == "statefulset"
			case "hold":
				p.held[act.Subject.Node] = true
			case "hang":
				p.hung[act.Subject.Pod] = true
			case "socket":
				p.sockets = p.sockets || act.Text("cri") != "right"
			case "upgrade":
				p.versions[act.Int("to")] = true // 0 is a system's
			}
		}
	}
	c.plan = p
}

// mostSkew is how far off a signature's time may be ("Signature Version 4": five minutes).
const mostSkew = 5 * time.Minute

// strikes refuses an action that cannot strike, whatever happens.
func (c *checker) strikes(s *scn.At, act *Act) {
	pos := s.Action.VerbPos
	for _, name := range []string{"times", "faults"} {
		if act.Text(name) != "" && act.Int(name) == 0 {
			c.bad(pos, "write "+name+"=1 or more", "%s %s=0 strikes nobody", act.Verb, name)
		}
	}
	for _, name := range []string{"for", "by"} {
		if act.Text(name) != "" && act.Duration(name) == 0 {
			c.bad(pos, "such as "+name+"=30s", "%s %s=0s strikes nobody", act.Verb, name)
		}
	}
	limits, _ := ec2.LimitsOf(c.cluster.Type)
	switch act.Verb {
	case "flush-routes":
		if t := act.Int("table"); t != mainTable && (t < 2 || t > limits.ENIs) && c.nodes {
			c.bad(pos, "254 is the main table; table N+1 is that of the ENI at device N", "flush-routes table=%d strikes nobody: a %s has tables %d and 2 to %d",
				t, c.cluster.Type, mainTable, limits.ENIs)
		}
	case "detach", "remove":
		if d := act.Int("device"); (d < 1 || d >= limits.ENIs) && c.nodes {
			c.bad(pos, "device 0 is the primary ENI, which stays", "%s device=%d strikes nobody: a %s has further ENIs at devices 1 to %d", act.Verb, d, c.cluster.Type, limits.ENIs-1)
		}
	case "roll":
		if act.Int("count") == 0 {
			c.bad(pos, "write how many pods are deleted", "roll %s 0 strikes nobody", act.Text("name"))
		}
	case "create":
		if act.Int("count") == 0 {
			c.bad(pos, "write how many pods there are", "create %s 0 makes no pod", act.Text("name"))
		}
	case "add-addresses":
		if act.Int("count") == 0 {
			c.bad(pos, "write how many addresses the pod adds", "add-addresses 0 strikes nobody")
		}
	case "skew":
		if by := act.Duration("by"); by <= mostSkew && by > 0 {
			c.bad(pos, "EC2 accepts signatures that are up to five minutes off", "skew by=%v strikes nobody", by)
		}
	case "unhold":
		all := act.Subject.Kind == scn.AllNodes
		if !c.plan.held[0] && !c.plan.held[act.Subject.Node] && !(all && len(c.plan.held) > 0) && c.whole {
			c.bad(pos, "hold keeps it down", "unhold strikes nobody: no line keeps the daemon down")
		}
	case "unhang":
		if !c.plan.hung[act.Subject.Pod] && c.whole {
			c.bad(pos, "hang has one go into D state", "unhang strikes nobody: no line hangs a process of pod %s", act.Subject.Pod)
		}
	case "socket":
		if act.Text("cri") == "right" && !c.plan.sockets && c.whole {
			c.bad(pos, "the socket is right from the start", "socket cri=right changes nothing: no line has it be another")
		}
	case "upgrade":
		if act.Int("to") == c.cluster.Version && len(c.plan.versions) == 1 {
			c.bad(pos, "write version=1 on the cluster line, or another version here", "upgrade to=%d changes nothing: the cluster has version %d from the start", act.Int("to"), c.cluster.Version)
		}
	}
	if act.Verb == "unassign" {
		c.named(scn.Subject{Pos: pos, Kind: scn.Pod, Pod: act.Text("pod")})
	}
}

// mainTable is where a machine's own routes are (RT_TABLE_MAIN).
const mainTable = 254
