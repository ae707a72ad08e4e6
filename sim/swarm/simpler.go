package swarm

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// parts tries simpler forms of each statement, the simplest first, until none of them breaks alike.
func (s *shrinker) parts() {
	for i := 0; i < len(s.file.Lines); i++ {
		for s.simplify(i) {
		}
	}
}

func (s *shrinker) simplify(line int) bool {
	forms := simpler(s.file.Lines[line].Stmt)
	return s.first(len(forms), func(i int) (*scn.File, uint64) {
		g := s.file.Clone()
		g.Lines[line].Stmt = forms[i]
		return g, s.seed
	}) >= 0
}

// gaps makes the time between two instants shorter: all that comes later comes sooner by as much.
func (s *shrinker) gaps() {
	for i := 0; !s.over(); i++ {
		instants := s.instants()
		if i >= len(instants) {
			return
		}
		from := time.Duration(0)
		if i > 0 {
			from = instants[i-1]
		}
		gaps := shorter(instants[i] - from)
		if s.first(len(gaps), func(k int) (*scn.File, uint64) { return s.shifted(instants[i], from+gaps[k]-instants[i]), s.seed }) >= 0 {
			i-- // the same gap again, from where it is now
		}
	}
}

// instants at which something happens, each once, in order.
func (s *shrinker) instants() []time.Duration {
	var out []time.Duration
	for _, at := range inOrder(s.file) {
		out = append(out, at.When)
	}
	return slices.Compact(out)
}

// shifted is the file with everything from an instant on moved.
func (s *shrinker) shifted(from, by time.Duration) *scn.File {
	g := s.file.Clone()
	for i := range g.Lines {
		if at, ok := g.Lines[i].Stmt.(*scn.At); ok {
			if at.When >= from {
				at.When += by
			}
			if at.HasEvery && at.Until >= from {
				at.Until += by
			}
		}
	}
	return g
}

// simpler are simpler forms of a statement, the simplest first. How long settling may take, and how long something may take to come
// true, are promises: less of them is not simpler but another scenario.
func simpler(s scn.Stmt) []scn.Stmt {
	switch s := s.(type) {
	case *scn.Cluster:
		return simplerCluster(s)
	case *scn.Config:
		return simplerConfig(s)
	case *scn.Start:
		return simplerStart(s)
	case *scn.At:
		if s.Action != nil {
			return simplerAction(s)
		}
	}
	return nil
}

func simplerCluster(s *scn.Cluster) (out []scn.Stmt) {
	for i, kv := range s.Args {
		out = append(out, &scn.Cluster{Args: slices.Delete(slices.Clone(s.Args), i, i+1)})
		if kv.Key == "subnet" || kv.Key == "type" || kv.Key == "runtime" || kv.Key == "version" {
			continue
		}
		for _, n := range smaller(kv.Value, 1) {
			args := slices.Clone(s.Args)
			args[i].Value = n
			out = append(out, &scn.Cluster{Args: args})
		}
	}
	return out
}

func simplerConfig(s *scn.Config) (out []scn.Stmt) {
	for i, kv := range s.Args {
		if len(s.Args) > 1 {
			out = append(out, &scn.Config{Args: slices.Delete(slices.Clone(s.Args), i, i+1)})
		}
		for _, n := range smaller(kv.Value, 0) {
			args := slices.Clone(s.Args)
			args[i].Value = n
			out = append(out, &scn.Config{Args: args})
		}
	}
	return out
}

func simplerStart(s *scn.Start) (out []scn.Stmt) {
	if s.Target.Kind != scn.Node || s.Target.Node != 1 {
		out = append(out, &scn.Start{Name: s.Name, Count: s.Count, Target: scn.Subject{Kind: scn.Node, Node: 1}})
	}
	for _, n := range smaller(strconv.Itoa(s.Count), 1) {
		count, _ := strconv.Atoi(n)
		out = append(out, &scn.Start{Name: s.Name, Count: count, Target: s.Target})
	}
	return out
}

// simplerAction: once instead of again and again, one node instead of all, fewer arguments, smaller ones, a rounder instant.
func simplerAction(s *scn.At) (out []scn.Stmt) {
	change := func(how func(at *scn.At)) {
		at, action := *s, *s.Action
		action.Args = slices.Clone(s.Action.Args)
		at.Action = &action
		how(&at)
		out = append(out, &at)
	}
	if s.HasEvery {
		change(func(at *scn.At) { at.HasEvery, at.Every, at.Until = false, 0, 0 })
		for _, d := range shorter(s.Until - s.When) {
			change(func(at *scn.At) { at.Until = at.When + d })
		}
	}
	if k := s.Action.Subject.Kind; k == scn.AllNodes || k == scn.Node && s.Action.Subject.Node > 1 {
		change(func(at *scn.At) { at.Action.Subject = scn.Subject{Kind: scn.Node, Node: 1} })
	}
	if k := s.Action.Subject; k.Kind == scn.Pod {
		at := strings.LastIndexByte(k.Pod, '-') + 1
		for _, n := range smaller(k.Pod[at:], 0) {
			change(func(to *scn.At) { to.Action.Subject.Pod = k.Pod[:at] + n })
		}
	}
	for i, arg := range s.Action.Args {
		change(func(at *scn.At) { at.Action.Args = slices.Delete(at.Action.Args, i, i+1) })
		for _, v := range lesser(s.Action, &arg) {
			change(func(at *scn.At) { at.Action.Args[i].Value = v })
		}
	}
	for _, d := range rounder(s.When) {
		change(func(at *scn.At) { at.When = d })
	}
	return out
}

// lesser are smaller values of an argument, by its type.
func lesser(a *scn.Action, arg *scn.Arg) []string {
	for _, p := range verb.Of(a).Params {
		switch {
		case p.Type == verb.Duration && p.Name == arg.Key:
			d, _ := time.ParseDuration(arg.Value)
			var out []string
			for _, less := range shorter(d) {
				out = append(out, draw.Short(less))
			}
			return out
		case p.Type == verb.Count && (p.Name == arg.Key || arg.Key == "" && p.Bare && isNumber(arg.Value)):
			return smaller(arg.Value, 0)
		}
	}
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// smaller are smaller numbers than one, down to least: the least itself, one, half, one less. No number has none.
func smaller(value string, least int) []string {
	n, err := strconv.Atoi(value)
	if err != nil {
		return nil
	}
	var out []string
	for _, x := range []int{least, 1, 2, n / 2, n * 3 / 4, n - 1} {
		if s := strconv.Itoa(x); x >= least && x < n && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// shorter are shorter durations: none, a second, half, less by a quarter, and rounder ones.
func shorter(d time.Duration) []time.Duration {
	var out []time.Duration
	for _, x := range append([]time.Duration{0, time.Second, d / 2, d * 3 / 4}, rounder(d)...) {
		if x >= time.Second {
			x = x.Truncate(time.Second)
		}
		if x < d && x >= 0 && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// rounder are instants not far before one that are easier to read.
func rounder(d time.Duration) []time.Duration {
	var out []time.Duration
	for _, unit := range []time.Duration{time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond} {
		if x := d.Truncate(unit); x < d && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
