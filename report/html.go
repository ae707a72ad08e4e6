package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/runner"
)

//go:embed page.css
var styleText string

//go:embed page.js
var scriptText string

// Bounds of a page, so that it opens at once and can be attached to anything: details of the gravest runs until their bytes are used up, and a row
// of the rest.
const (
	mostDetails  = 1_400_000
	mostSections = 150
	mostRows     = 1500
)

// HTML writes one page that needs nothing beside itself.
func HTML(w io.Writer, p *Page) error {
	p = cleaned(trimmed(p, mostSections))
	v := &view{Page: p}
	room := mostDetails
	v.pairs(&room)
	v.runs(&room)
	v.verdict()
	v.banner()
	_, err := w.Write(write(v.document()))
	return err
}

// view is a page as it is shown.
type view struct {
	*Page
	Word     string // of all together
	Class    string
	Lead     string // the first line
	Head     string // its first part, and what follows
	Tail     string
	LeadLink string
	Rows     []rowView
	MoreRows string
	Sections []written
	Short    string // how many details were left out
	Reds     int

	left    int              // runs without details
	pairIDs map[*Pair]string // of those that have details
}

// rowView is a run in the table of all.
type rowView struct {
	Link, Word, Class, Icon string
	Name, Text              string
	Sentence                string
	run                     *Run
	Seed                    string // "" when nothing was played
	World                   string
}

// Icons, so that no colour speaks alone.
var icons = map[string]string{"bad": "✖", "good": "✔", "warn": "▲", "none": "○"}

// classOf is how a run looks.
func classOf(r *Run) string {
	switch {
	case r.Verdict == runner.Skipped.String():
		return "none"
	case !r.Red():
		return "good"
	case r.Verdict == runner.Violated.String() || r.Verdict == runner.Bad.String() || r.Verdict == runner.Unrepeatable.String() || r.Claim != "":
		return "bad"
	}
	return "warn"
}

// wordOf is a run's verdict as the page says it.
func wordOf(r *Run) string {
	switch {
	case r.Meant:
		return "caught"
	case r.Claim != "":
		return runner.Unproven.String()
	}
	return r.Verdict
}

// brief is the sentence for a row that has verdict and name already.
func (r *Run) brief() string {
	if r.First == nil {
		_, text, _ := strings.Cut(r.Sentence(), ": ")
		return text
	}
	head, tail := r.parts()
	_, head, _ = strings.Cut(head, " ")
	if r.First.Invariant != "" {
		tail = ""
	}
	return short(head + tail)
}

// rank orders runs: what is red first, then caught mutants of a page that has nothing red, then what held.
func rank(r *Run) int {
	switch {
	case r.Red() && r.First != nil && r.Claim == "":
		return 0
	case r.Red():
		return 1
	case r.Verdict == runner.Skipped.String():
		return 4
	case r.Meant:
		return 3
	}
	return 2
}

// runs are the rows of all runs, and the details of those for which there is room.
func (v *view) runs(room *int) {
	order := make([]*Run, len(v.Page.Runs))
	for i := range v.Page.Runs {
		order[i] = &v.Page.Runs[i]
	}
	slices.SortStableFunc(order, func(a, b *Run) int { return rank(a) - rank(b) })
	for i, r := range order {
		id := fmt.Sprintf("run-%d", i+1)
		row := rowView{Word: wordOf(r), Class: classOf(r), Icon: icons[classOf(r)], Name: r.Name(), Text: r.brief(), Sentence: r.Sentence(), run: r, Seed: strconv.FormatUint(r.Seed, 10), World: r.World}
		if r.Red() {
			v.Reds++
		}
		const little = 20_000 // not worth trying with less
		if *room < little || i >= mostSections {
			v.left++
			if i < mostRows {
				v.Rows = append(v.Rows, row)
			}
			continue
		}
		text := write(viewOf(r, id, len(v.Page.Pairs) == 0 && i == 0).part())
		if len(text) <= *room {
			*room -= len(text)
			row.Link = id
			v.Sections = append(v.Sections, text)
		} else {
			v.left++
		}
		if i < mostRows {
			v.Rows = append(v.Rows, row)
		}
	}
	if n := len(order) - mostRows; n > 0 {
		v.MoreRows = runner.Count(n, "run") + " more, none of them graver than these, not listed here: JUnit's " +
			"file and --json have them all"
	}
	if v.left > 0 {
		v.Short = runner.Count(v.left, "run") + " without details, which would make the page too large: play one " +
			"alone to see it"
	}
}

// pairView is a gate's pair.
type pairView struct {
	*Pair
	ID, Class, Icon string
	Open            bool
	Left, Right     written
	Line            string
}

// Classes and order of changes.
var changes = []struct {
	Change
	class string
}{{Regression, "bad"}, {Unknown, "warn"}, {Mended, "good"}, {Accepted, "warn"}, {Same, "none"}}

func classOfChange(c Change) (class string, rank int) {
	for i, x := range changes {
		if x.Change == c {
			return x.class, i
		}
	}
	return "warn", 1
}

// pairs are the details of a gate's pairs, the gravest first.
func (v *view) pairs(room *int) {
	v.pairIDs = map[*Pair]string{}
	order := make([]*Pair, len(v.Page.Pairs))
	for i := range v.Page.Pairs {
		order[i] = &v.Page.Pairs[i]
	}
	slices.SortStableFunc(order, func(a, b *Pair) int {
		_, x := classOfChange(a.Change)
		_, y := classOfChange(b.Change)
		return x - y
	})
	for i, p := range order {
		class, _ := classOfChange(p.Change)
		x := pairView{Pair: p, ID: fmt.Sprintf("pair-%d", i+1), Class: class, Icon: icons[class], Open: v.Banner == nil && (i == 0 || p.Change == Regression && i < 5), Line: p.sentence()}
		if p.Change == Regression {
			v.Reds++
		}
		for j, r := range []*Run{p.Old, p.New} {
			if r == nil {
				continue
			}
			text := write(viewOf(r, fmt.Sprintf("%s-%s", x.ID, [...]string{"old", "new"}[j]), true).part())
			if j == 0 {
				x.Left = text
			} else {
				x.Right = text
			}
		}
		row := rowView{Word: string(p.Change), Class: class, Icon: x.Icon, Name: p.name(), Text: x.Line, Sentence: x.Line, run: p.New}
		if p.New != nil {
			row.Seed, row.World = strconv.FormatUint(p.New.Seed, 10), p.New.World
		}
		if text := write(x.part()); len(text) <= *room {
			*room -= len(text)
			row.Link, v.pairIDs[p] = x.ID, x.ID
			v.Sections = append(v.Sections, text)
		} else {
			v.left++
		}
		if len(v.Rows) < mostRows {
			v.Rows = append(v.Rows, row)
		}
	}
}

func (p *Pair) name() string {
	if p.Play == "" {
		return p.Scenario
	}
	return p.Scenario + ", " + p.Play
}

// sentence says what changed: what the new one breaks, or what the old one did.
func (p *Pair) sentence() string {
	s := ""
	switch {
	case p.Change == Mended && p.Old != nil:
		s = "before: " + p.Old.Sentence()
	case p.New != nil:
		s = p.New.Sentence()
	}
	switch {
	case p.Why == "":
		return s
	case s == "":
		return p.Why
	}
	return p.Why + ". " + s
}

// verdict is the first line of the page.
func (v *view) verdict() {
	beyond := 0
	for _, f := range v.Figures {
		if f.Beyond {
			beyond++
		}
	}
	broken, skipped := 0, 0
	for i := range v.Checks {
		switch v.Checks[i].Verdict {
		case "violated":
			broken++
		case "skipped":
			skipped++
		}
	}
	switch {
	case v.Reds > 0:
		v.Word, v.Class, v.Lead, v.LeadLink = v.Rows[0].Word, v.Rows[0].Class, v.Rows[0].Sentence, v.Rows[0].Link
		v.Head, v.Tail = v.Lead, ""
		if r := v.Rows[0].run; r != nil && r.First != nil {
			v.Head, v.Tail = r.parts()
		}
		if len(v.Pairs) > 0 {
			name := strings.ToUpper(v.Rows[0].Word) + " in " + v.Rows[0].Name + ": "
			v.Lead, v.Head = name+v.Lead, name+v.Head
		}
	case broken > 0:
		v.Word, v.Class = "violated", "bad"
		for i := range v.Checks {
			if c := &v.Checks[i]; c.Verdict == "violated" {
				v.Lead = fmt.Sprintf("VIOLATED %s %s: %s", c.Suite, c.Name, c.Text)
				break
			}
		}
	case beyond > 0:
		v.Word, v.Class = "regression", "bad"
		v.Lead = fmt.Sprintf("REGRESSION: %s beyond their bands", runner.Count(beyond, "figure"))
	case len(v.Checks) > 0:
		v.Word, v.Class = "held", "good"
		v.Lead = fmt.Sprintf("HELD: %s, %d skipped", runner.Count(len(v.Checks), "row"), skipped)
	case len(v.Pairs) > 0:
		v.Word, v.Class = "no regression", "good"
		v.Lead = "NO REGRESSION in " + runner.Count(len(v.Pairs), "pair")
	case len(v.Page.Runs) == 0:
		v.Word, v.Class, v.Lead = "not played", "warn", "NOTHING WAS PLAYED"
	default:
		v.Lead, v.Word, v.Class = v.green(), "held", "good"
	}
	v.Head = cmp.Or(v.Head, v.Lead)
	v.Head, v.Tail = short(v.Head), short(v.Tail)
}

// green is the first line of a page without anything red.
func (v *view) green() string {
	held, caught, skipped := 0, 0, 0
	for i := range v.Page.Runs {
		switch r := &v.Page.Runs[i]; {
		case r.Meant:
			caught++
		case r.Verdict == runner.Held.String():
			held++
		default:
			skipped++
		}
	}
	if held+caught == 0 {
		return v.Rows[0].Sentence
	}
	s := fmt.Sprintf("HELD: %s", runner.Count(held, "run"))
	if caught > 0 {
		s += ", " + runner.Count(caught, "run") + " of mutants, all caught"
	}
	if skipped > 0 {
		s += fmt.Sprintf(", %d skipped", skipped)
	}
	if held+caught == 1 && skipped == 0 {
		return v.Rows[0].Sentence
	}
	return s
}

// banner is the first line of a page that is told what it is.
func (v *view) banner() {
	b := v.Banner
	if b == nil {
		return
	}
	v.Word, v.Class, v.Lead, v.Head, v.Tail, v.LeadLink = b.Word, string(b.Class), strings.ToUpper(b.Word)+": "+b.Line, b.Line, "", ""
	if len(v.Findings) > 0 && !v.Findings[0].Folded {
		v.LeadLink = findingID(0)
	}
}

func findingID(i int) string { return "finding-" + strconv.Itoa(i+1) }
