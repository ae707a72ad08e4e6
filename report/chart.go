package report

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// runView is a run as the template shows it. Places on the time axis are percentages of its width.
type runView struct {
	*Run
	ID, Class, Icon, Line string
	Word                  string
	Open                  bool
	At                    string // of the violation; "" when there is none
	Ticks                 []tick
	Bands                 []band
	Groups                []group
	Charts                []chart
	Events                []eventView
	Strikes               []strikeView
	MoreEvents            string
}

type tick struct{ X, Text string }

// band is a while in which a fault lasted.
type band struct {
	X, W  string
	Kind  FaultKind
	Point bool
}

// group is a node's lanes, or the faults'.
type group struct {
	Name  string
	Lanes []laneView
	More  string
}

// laneView is a row of the chart.
type laneView struct {
	Kind, Name, Note string
	Link             string // of the script's line
	Bars             []bar
	Label            string // all of it in words, for who does not see it
}

type bar struct {
	X, W, Class, Title string
}

type eventView struct {
	At       string
	X        string
	Who      string
	Text     string
	Broke    bool
	Scenario bool
}

// strikeView is a fault in the table.
type strikeView struct {
	*Fault
	When string
}

// axis maps instants to the width.
type axis struct{ from, to time.Duration }

func (a axis) x(t time.Duration) float64 {
	return 100 * float64(min(max(t, a.from), a.to)-a.from) / float64(a.to-a.from)
}

// number prints a place without more digits than a screen has dots.
func number(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }

func viewOf(r *Run, id string, open bool) *runView {
	v := &runView{Run: r, ID: id, Class: classOf(r), Icon: icons[classOf(r)], Word: wordOf(r), Line: r.Sentence(), Open: open}
	end := r.Ended
	if r.First != nil {
		end = max(end, r.First.At)
	}
	a := axis{0, max(end+end/25, time.Second)}
	if r.First != nil {
		a.from = min(0, r.First.At)
		v.At = number(a.x(r.First.At))
	}
	v.Ticks = ticks(a)
	if len(r.Lanes)+len(r.Faults)+len(r.Curves) > 0 {
		v.faults(a, id)
		v.lanes(a)
		v.curves(a)
	} else {
		v.Ticks = nil
	}
	v.events(a)
	return v
}

// steps are distances between ticks.
var steps = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// mostTicks fit a phone.
const mostTicks = 5

func ticks(a axis) []tick {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (a.to-a.from)/s <= mostTicks {
			step = s
			break
		}
	}
	var out []tick
	for t := a.from.Truncate(step); t <= a.to && len(out) < 2*mostTicks; t += step {
		if x := a.x(t); t >= a.from && x <= 94 {
			out = append(out, tick{number(x), Clock(t)})
		}
	}
	return out
}

// How many rows of a kind a chart has at most.
const (
	mostFaults = 24
	mostENIs   = 16
	mostPods   = 20
)

// faults are the bands, and a row for each line.
func (v *runView) faults(a axis, id string) {
	g := group{Name: "what the scenario did"}
	rows := map[int]int{}
	for i := range v.Faults {
		f := &v.Faults[i]
		x, w := a.x(f.From), a.x(f.To)-a.x(f.From)
		b := bar{number(10 * x), number(max(10*w, 4)), "f-" + string(f.Kind) + fate(f), Clock(f.From)}
		if f.To > f.From {
			b.Title += " to " + Clock(f.To)
		}
		if len(v.Bands) < 4*mostFaults && f.Fate == "struck" && f.Kind != AtKube {
			v.Bands = append(v.Bands, band{number(x), number(w), f.Kind, w < 0.2})
		}
		v.Strikes = append(v.Strikes, strikeView{f, span(f.From, f.To)})
		row, known := rows[f.Line]
		if !known {
			if len(g.Lanes) == mostFaults {
				g.More = "and more, which the table of actions has"
				continue
			}
			row = len(g.Lanes)
			rows[f.Line] = row
			g.Lanes = append(g.Lanes, laneView{Kind: "line " + strconv.Itoa(f.Line), Name: f.Text, Link: fmt.Sprintf("%s-line-%d", id, f.Line), Note: f.Fate + " " + b.Title})
		} else if n := len(g.Lanes[row].Bars); n == 1 {
			g.Lanes[row].Note += " and again"
		}
		l := &g.Lanes[row]
		if len(l.Bars) < 50 {
			l.Bars = append(l.Bars, b)
		}
		l.Label = l.Name + ": " + l.Note
	}
	if len(v.Strikes) > 200 {
		v.Strikes = v.Strikes[:200]
	}
	if len(g.Lanes) > 0 {
		v.Groups = append(v.Groups, g)
	}
}

func fate(f *Fault) string {
	if f.Fate == "missed" {
		return " missed"
	}
	return ""
}

func span(from, to time.Duration) string {
	if from == to {
		return Clock(from)
	}
	return Clock(from) + "–" + Clock(to)
}

// looks of states: what is as it should be is a thin line, what is not a thick one.
var states = map[string]string{"runs": "ok", "in-use": "ok", "starts": "begin", "recovers": "begin", "attaching": "begin", "ends": "end", "detaching": "end", "down": "down",
	"impaired": "warn", "unreachable": "bad", "cut off": "bad"}

// lanes are the rows of each node: its daemon, its ENIs, and its pods, first those that something happened to.
func (v *runView) lanes(a axis) {
	lanes := slices.Clone(v.Lanes)
	slices.SortStableFunc(lanes, func(x, y Lane) int {
		return cmp.Or(v.node(x.Node)-v.node(y.Node), kindRank(x.Kind)-kindRank(y.Kind), v.grave(&y)-v.grave(&x))
	})
	for len(lanes) > 0 {
		n := slices.IndexFunc(lanes, func(l Lane) bool { return l.Node != lanes[0].Node })
		if n < 0 {
			n = len(lanes)
		}
		v.Groups = append(v.Groups, v.group(lanes[:n], a))
		lanes = lanes[n:]
	}
}

// node ranks the one that the violation names first.
func (v *runView) node(n int) int {
	if v.First != nil && v.First.Node == n {
		return 0
	}
	return n
}

func kindRank(k LaneKind) int { return slices.Index([]LaneKind{Daemon, ENI, Pod}, k) }

// grave is how much a subject matters: it was out of reach, the violation names it, or something changed.
func (v *runView) grave(l *Lane) int {
	g := 0
	for i := range l.Spans {
		if states[l.Spans[i].State] == "bad" {
			g |= 4
		}
	}
	if b := v.First; b != nil && l.Name != "" && names(b.Text, short(l.Name)) {
		g |= 8
	}
	if len(l.Spans) > 1 {
		g |= 1
	}
	return g
}

// names says whether a text speaks of a name, and not of one that begins so.
func names(text, name string) bool {
	for {
		_, rest, found := strings.Cut(text, name)
		if !found {
			return false
		}
		if rest == "" || !strings.ContainsRune("-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", rune(rest[0])) {
			return true
		}
		text = rest
	}
}

func (v *runView) group(lanes []Lane, a axis) group {
	g := group{Name: fmt.Sprintf("node-%d", lanes[0].Node)}
	shownOf, left := map[LaneKind]int{}, 0
	for i := range lanes {
		l := &lanes[i]
		most := mostPods
		if l.Kind == ENI {
			most = mostENIs
		}
		if shownOf[l.Kind]++; shownOf[l.Kind] > most {
			left++
			continue
		}
		g.Lanes = append(g.Lanes, laneOf(l, a))
	}
	if left > 0 {
		g.More = runner.Count(left, "more lane")
	}
	return g
}

// eniID is an ID that the timeline has a shorter name for.
var eniID = regexp.MustCompile(` \(eni-[0-9a-f]{17}\)`)

// short is a name without its ID.
func short(name string) string { return eniID.ReplaceAllString(name, "") }

func laneOf(l *Lane, a axis) laneView {
	v := laneView{Kind: string(l.Kind), Name: short(l.Name)}
	if l.Kind == Daemon {
		v.Kind, v.Name = "", "daemon"
	}
	var words []string
	for i, s := range l.Spans {
		class := cmp.Or(states[s.State], "warn")
		x := 10 * a.x(s.From)
		w := max(10*a.x(s.To)-x, 2)
		if class == "bad" {
			w = max(w, 14) // what broke last has to be seen
		}
		title := s.State + " " + span(s.From, s.To)
		if s.Text != "" {
			title += ", " + short(s.Text)
		}
		if n := len(v.Bars); n > 0 && i > 0 && l.Spans[i-1].State == s.State && l.Spans[i-1].To == s.From { // only its text has changed
			last, _ := strconv.ParseFloat(v.Bars[n-1].X, 64)
			v.Bars[n-1].W = number(x + w - last)
			v.Bars[n-1].Title += "; from " + Clock(s.From) + " " + short(s.Text)
			continue
		}
		words = append(words, s.State+" "+span(s.From, s.To))
		v.Bars = append(v.Bars, bar{number(x), number(w), "s-" + class, title})
	}
	v.Note = note(l)
	const mostWords = 12
	if len(words) > mostWords {
		words = append(words[:mostWords], "and so on")
	}
	v.Label = v.Name + ": " + strings.Join(words, ", ")
	return v
}

// note says in a few words what is worth knowing of a lane: since when it is out of reach, that it went, or how it is in the end.
func note(l *Lane) string {
	last := l.Spans[len(l.Spans)-1]
	for i := len(l.Spans) - 1; i >= 0; i-- {
		if s := l.Spans[i]; states[s.State] == "bad" {
			if i == len(l.Spans)-1 {
				return s.State + " from " + Clock(s.From)
			}
			return s.State + " " + span(s.From, s.To)
		}
	}
	text := short(last.Text)
	switch {
	case l.Kind == Pod:
		if _, where, found := strings.Cut(text, " on "); found {
			return last.State + ", " + where
		}
		return last.State
	case l.Kind == Daemon:
		return last.State
	case states[last.State] != "ok":
		return last.State + " from " + Clock(last.From)
	}
	return text
}

// chart is a few curves over one axis.
type chart struct {
	Name  string
	Max   string
	Lines []curveView
}

type curveView struct {
	Name, Path, Class string
	Low, High, Last   string
}

// curves are the pool of each node, the buckets that something was drawn from, and the cluster's own numbers.
func (v *runView) curves(a axis) {
	var nodes []int
	for i := range v.Curves {
		if n := v.Curves[i].Node; n > 0 && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(x, y int) int { return v.node(x) - v.node(y) })
	const mostPools = 3
	for _, n := range nodes[:min(mostPools, len(nodes))] {
		v.chart(fmt.Sprintf("addresses of node-%d", n), a, false, func(c *Curve) bool {
			return c.Node == n && (c.Name != "pods with an address" || !v.has(n, "assigned")) && (high(c) > 0 || c.Name == "assigned")
		})
	}
	v.chart("EC2's token buckets, percent full", a, true, func(c *Curve) bool { return c.Node == 0 && strings.HasPrefix(c.Name, "tokens of ") && drawn(c) })
	v.chart("pods of the cluster", a, false, func(c *Curve) bool { return c.Node == 0 && strings.HasPrefix(c.Name, "pods") })
	v.chart("calls that EC2 throttled", a, false, func(c *Curve) bool { return c.Node == 0 && c.Name == "calls throttled" && high(c) > 0 })
	v.chart("free addresses of the subnet", a, false, func(c *Curve) bool {
		return c.Node == 0 && strings.HasPrefix(c.Name, "free addresses") && len(c.Points) > 1
	})
}

func (v *runView) has(node int, name string) bool {
	return slices.ContainsFunc(v.Curves, func(c Curve) bool { return c.Node == node && c.Name == name })
}

func high(c *Curve) float64 {
	most := math.Inf(-1)
	for _, p := range c.Points {
		most = max(most, p.Value)
	}
	return most
}

// drawn says whether something worth showing was ever drawn from a bucket.
func drawn(c *Curve) bool {
	return slices.ContainsFunc(c.Points, func(p Point) bool { return p.Value < .9*capacity(c) })
}

// capacity is what a bucket's name says.
func capacity(c *Curve) float64 {
	_, of, _ := strings.Cut(c.Name, "(of ")
	n, err := strconv.ParseFloat(strings.TrimSuffix(of, ")"), 64)
	if err != nil || n <= 0 {
		return 1
	}
	return n
}

// The size of a chart's own coordinates, and how many ways of drawing a line there are.
const (
	chartHigh = 100
	dashes    = 6
)

func (v *runView) chart(name string, a axis, percent bool, which func(*Curve) bool) {
	x := chart{Name: name}
	top := 0.0
	var list []*Curve
	for i := range v.Curves {
		if c := &v.Curves[i]; len(c.Points) > 0 && which(c) {
			list = append(list, c)
			top = max(top, high(c))
		}
	}
	if percent {
		top = 100
	}
	if len(list) == 0 {
		return
	}
	top = max(top, 1)
	for i, c := range list[:min(len(list), dashes)] {
		scale := 1.0
		if percent {
			scale = 100 / capacity(c)
		}
		var b strings.Builder
		low, most, last := math.Inf(1), math.Inf(-1), 0.0
		for j, p := range c.Points {
			y := number(chartHigh - chartHigh*min(max(p.Value*scale/top, 0), 1)) // what is outside cannot be shown
			px := number(10 * a.x(p.At))
			if j == 0 {
				fmt.Fprintf(&b, "M%s %s", px, y)
			} else {
				fmt.Fprintf(&b, "H%sV%s", px, y)
			}
			low, most, last = min(low, p.Value*scale), max(most, p.Value*scale), p.Value*scale
		}
		fmt.Fprintf(&b, "H%s", number(10*a.x(v.Ended)))
		label := c.Name
		if percent {
			label = strings.TrimPrefix(label, "tokens of ")
		}
		x.Lines = append(x.Lines, curveView{label, b.String(), "c" + strconv.Itoa(i+1), whole(low), whole(most), whole(last)})
	}
	x.Max = whole(top)
	v.Charts = append(v.Charts, x)
}

func whole(f float64) string { return strconv.FormatFloat(math.Round(f), 'f', 0, 64) }

// events are the rows of the timeline, with the violation among them.
func (v *runView) events(a axis) {
	b := v.First
	told := b == nil
	say := func() {
		who := "cluster"
		if b.Node > 0 {
			who = fmt.Sprintf("node-%d", b.Node)
		}
		text := b.Text
		if b.Invariant != "" {
			text = b.Invariant + " – " + text
		}
		v.Events = append(v.Events, eventView{At: Clock(b.At), X: number(a.x(b.At)), Who: who, Text: text, Broke: true})
		told = true
	}
	for i := range v.Timeline {
		e := &v.Timeline[i]
		if !told && e.At > b.At {
			say()
		}
		who := fmt.Sprintf("node-%d", e.Node)
		switch {
		case e.Node == 0:
			who = "scenario"
		case e.Node < 0:
			who = "cluster"
		}
		v.Events = append(v.Events, eventView{At: Clock(e.At), X: number(a.x(e.At)), Who: who, Text: e.Text, Scenario: e.Node == 0})
	}
	if !told {
		say()
	}
}
