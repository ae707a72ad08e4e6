package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// The elements of JUnit's XML, as Ant, Jenkins, GitLab and GitHub's readers know them.
type suitesXML struct {
	XMLName  xml.Name    `xml:"testsuites"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Suites   []*suiteXML `xml:"testsuite"`

	wall time.Duration
}

type suiteXML struct {
	Name     string    `xml:"name,attr"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Errors   int       `xml:"errors,attr"`
	Skipped  int       `xml:"skipped,attr"`
	Time     string    `xml:"time,attr"`
	Cases    []caseXML `xml:"testcase"`

	wall time.Duration
}

type caseXML struct {
	Name      string   `xml:"name,attr"`
	Classname string   `xml:"classname,attr"`
	Time      string   `xml:"time,attr"`
	Skipped   *saidXML `xml:"skipped"`
	Error     *saidXML `xml:"error"`
	Failure   *saidXML `xml:"failure"`
	Out       string   `xml:"system-out,omitempty"`
}

type saidXML struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes a page as XML: a testsuite for each file, table or kind of figures, and a testcase for each variant, seed and mutant of it.
func JUnit(w io.Writer, p *Page) error {
	p = cleaned(trimmed(p, 0))
	x := &suitesXML{Name: "enilab " + p.Title}
	if p.Banner != nil {
		x.add("gate", caseOfBanner(p), 0)
	}
	for i := range p.Runs {
		r := &p.Runs[i]
		x.add(r.suite(), caseOf(r), r.Wall)
	}
	for i := range p.Pairs {
		p := &p.Pairs[i]
		x.add(p.Scenario, caseOfPair(p), p.wall())
	}
	for i := range p.Figures {
		x.add("figures", caseOfFigure(&p.Figures[i]), 0)
	}
	for i := range p.Checks {
		c := &p.Checks[i]
		x.add(c.Suite, caseOfCheck(c), c.Wall)
	}
	for _, s := range x.Suites {
		s.Time = seconds(s.wall)
	}
	x.Time = seconds(x.wall)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(x); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// suite is what a run's testsuite is called: its file, for two folders may have files of one name.
func (r *Run) suite() string {
	if r.File != "" {
		return r.File
	}
	return r.Scenario
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// add puts a case into its suite.
func (x *suitesXML) add(suite string, c caseXML, wall time.Duration) {
	var s *suiteXML
	for _, old := range x.Suites {
		if old.Name == suite {
			s = old
		}
	}
	if s == nil {
		s = &suiteXML{Name: suite}
		x.Suites = append(x.Suites, s)
	}
	c.Time = seconds(wall)
	s.wall += wall
	x.wall += wall
	s.Tests++
	x.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
		x.Failures++
	case c.Error != nil:
		s.Errors++
		x.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// caseOf is a run. What says something about the CNI or the file is a failure, what says something about the laboratory or the machine an error.
func caseOf(r *Run) caseXML {
	name := "seed " + strconv.FormatUint(r.Seed, 10)
	for _, x := range []struct{ what, is string }{{"", r.Variant}, {"", r.Play}, {"", r.System}, {"mutant ", r.Mutant}} {
		if x.is != "" {
			name += ", " + x.what + x.is
		}
	}
	c := caseXML{Name: name + " on " + r.World, Classname: r.Scenario}
	said := &saidXML{Message: r.Sentence(), Type: wordOf(r), Text: r.words()}
	switch status, _ := runner.StatusOf(r.Verdict); {
	case r.Claim != "" && r.Meant:
		c.Out = r.Sentence() + "\n"
	case r.Claim != "":
		c.Failure = said
	case status == runner.Held:
		c.Out = r.Sentence() + "\n"
	case status == runner.Skipped:
		said.Type = ""
		c.Skipped = said
	case status == runner.Violated || status == runner.NotSettled || status == runner.Unproven:
		c.Failure = said
	default:
		c.Error = said
	}
	return c
}

// mostTold is how many lines of the timeline a failure has.
const mostTold = 12

// words are a failure's text: the sentence, what to do, what happened, and the command that shows it again.
func (r *Run) words() string {
	var b strings.Builder
	line := func(s string) { b.WriteString(s + "\n") }
	line(r.Sentence())
	for _, s := range r.Also {
		if !strings.HasSuffix(r.Sentence(), s) {
			line(s)
		}
	}
	if r.Remedy != "" {
		line("what to do: " + r.Remedy)
	}
	var told []string
	for i := range r.Timeline {
		if e := &r.Timeline[i]; r.First == nil || e.At <= r.First.At {
			told = append(told, "  "+Clock(e.At)+"  "+e.Text)
		}
	}
	if n := len(told) - mostTold; n > 0 {
		told = told[n:]
	}
	if len(told) > 0 && r.First != nil {
		line("what happened until then:")
		line(strings.Join(told, "\n"))
	}
	if r.Command != "" {
		line("again: " + r.Command)
	}
	return b.String()
}

func (p *Pair) wall() time.Duration {
	var wall time.Duration
	if p.New != nil {
		wall = p.New.Wall
	}
	return wall
}

func caseOfPair(p *Pair) caseXML {
	c := caseXML{Name: p.Play, Classname: p.Scenario}
	c.Name = cmp.Or(c.Name, p.Scenario)
	said := &saidXML{Message: p.sentence(), Type: string(p.Change), Text: p.sentence() + "\n"}
	if p.New != nil {
		said.Text = p.sentence() + "\n" + p.New.words()
	}
	switch p.Change {
	case Regression:
		c.Failure = said
	case Unknown:
		said.Type = ""
		c.Skipped = said
	default:
		c.Out = string(p.Change) + ": " + p.sentence() + "\n"
	}
	return c
}

// caseOfBanner is the judgement of the whole. What is not known is an error: a pipeline must not take it for a success.
func caseOfBanner(p *Page) caseXML {
	c := caseXML{Name: p.Title, Classname: "gate"}
	line := p.Banner.Word + ": " + p.Banner.Line
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", line, p.Banner.Also)
	for i := range p.Findings {
		if f := &p.Findings[i]; !f.Folded {
			fmt.Fprintf(&b, "%s: %s\n", f.Kind, f.Line)
			for _, s := range f.Facts {
				fmt.Fprintf(&b, "  %s\n", s)
			}
			if f.Command != "" {
				fmt.Fprintf(&b, "  again: %s\n", f.Command)
			}
		}
	}
	said := &saidXML{Message: line, Type: p.Banner.Word, Text: b.String()}
	switch p.Banner.Class {
	case Good:
		c.Out = b.String()
	case Bad:
		c.Failure = said
	default:
		c.Error = said
	}
	return c
}

func caseOfFigure(f *Figure) caseXML {
	c := caseXML{Name: f.Name, Classname: "figures"}
	text := fmt.Sprintf("%s: %v %s before, %v %s now, +%s %% tolerated", f.Name, f.Old, f.Unit, f.New, f.Unit, f.Percent())
	if f.Beyond {
		c.Failure = &saidXML{Message: text, Type: string(Regression), Text: text + "\nwhat to do: find out what costs more; changing a band is a commit with its reason\n"}
	} else {
		c.Out = text + "\n"
	}
	return c
}

func caseOfCheck(k *Check) caseXML {
	c := caseXML{Name: k.Name, Classname: k.Suite}
	said := &saidXML{Message: k.Text, Type: k.Verdict, Text: k.Text + "\n"}
	switch k.Verdict {
	case "held":
	case "skipped":
		said.Type = ""
		c.Skipped = said
	default:
		c.Failure = said
	}
	return c
}
