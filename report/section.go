package report

import (
	"cmp"
	"strconv"

	"github.com/enilab/enilab/sim/runner"
)

// badge is a verdict before a heading.
func badge(look, icon, word string) part {
	return tag("span", class("badge "+look), sign(icon), text(word))
}

// part is a pair's details: the two runs beside each other.
func (v *pairView) part() part {
	side := func(name string, run written) part {
		if run == nil {
			return tag("div", tag("h3", text(name)), tag("p", text("was not played")))
		}
		return tag("div", tag("h3", text(name)), run)
	}
	return tag("details", class("pair "+v.Class), attr("id", v.ID), flag("open", v.Open), flag("data-section", true),
		tag("summary", tag("h2", badge(v.Class, v.Icon, string(v.Change)), text(" "+v.name()))),
		tag("p", class("sentence"), text(v.Line)),
		tag("div", class("beside"), side("old", v.Left), side("new", v.Right)))
}

// part is a run's details.
func (v *runView) part() part {
	return tag("details", class("run "+v.Class), attr("id", v.ID), flag("open", v.Open), flag("data-section", true),
		tag("summary", tag("h2", badge(v.Class, v.Icon, v.Word), text(" "+v.Name()))),
		paragraph("sentence", v.Line),
		each(v.Also, func(s *string) part { return paragraph("also", *s) }),
		when(v.Remedy != "", tag("p", class("remedy"), tag("b", text("What to do:")), text(" "+v.Remedy))),
		again(v.Command),
		v.facts(),
		when(len(v.Groups) > 0, v.chartOfLanes()),
		when(v.Others != "", tag("p", class("others"), text(v.Others+"."))),
		when(len(v.Charts) > 0, tag("h3", text("Pools and buckets")), tag("div", class("charts"), each(v.Charts, (*chart).part))),
		tag("div", class("two"), v.eventTable(), v.scriptTable()),
		v.strikeTable(), v.lookTable(), v.skipList())
}

// facts are a line about what was played.
func (v *runView) facts() part {
	s := v.File + " · world " + v.World + " · seed " + strconv.FormatUint(v.Seed, 10)
	if v.Nodes > 0 {
		s += " · " + runner.Count(v.Nodes, "node")
	}
	if v.System != "" {
		s += " · " + v.System
	}
	if v.Mutant != "" {
		s += " · mutant " + v.Mutant
		if v.Claim != "" {
			s += ", which has to break “" + v.Claim + "” first"
		}
	}
	return tag("p", class("facts"), when(v.Headline != "", tag("q", text(v.Headline)), text(" ")), text(s+" · ended "+Clock(v.Ended)))
}

// chartOfLanes are daemons, ENIs and pods over time, with what the scenario did behind them.
func (v *runView) chartOfLanes() part {
	at := cmp.Or(v.At, "0")
	var line, mark part
	if v.At != "" {
		line, mark = tag("b", attr("style", "left:"+v.At+"%")), tag("span", class("mark"), text("┃ violated"))
	}
	return parts{tag("h3", text("What happened to whom")),
		tag("div", class("lanes"), attr("style", "--v:"+at),
			tag("div", class("over"), attr("aria-hidden", "true"), each(v.Bands, (*band).part), line, tag("u")),
			tag("table", tag("caption", class("gone"), text("lanes over time; every bar says in words what it shows")),
				tag("thead", tag("tr", tag("td", class("label"), mark), tag("td", class("axis"), attr("aria-hidden", "true"),
					each(v.Ticks, func(t *tick) part { return tag("span", attr("style", "left:"+t.X+"%"), text(t.Text)) })))),
				each(v.Groups, (*group).part))),
		legend}
}

func (b *band) part() part {
	point := ""
	if b.Point {
		point = " point"
	}
	return tag("i", class(string(b.Kind)+point), attr("style", "left:"+b.X+"%;width:"+b.W+"%"))
}

func (g *group) part() part {
	return tag("tbody", tag("tr", tag("th", class("group"), attr("colspan", "2"), attr("scope", "rowgroup"), text(g.Name))),
		each(g.Lanes, (*laneView).part),
		when(g.More != "", tag("tr", tag("td", class("label")), tag("td", class("more"), text(g.More)))))
}

func (l *laneView) part() part {
	return tag("tr", flag("data-find", true),
		tag("th", attr("scope", "row"), class("label"), link(l.Link, text(l.Name)), text(" "), tag("small", text(l.Note))),
		tag("td", tag("svg", attr("viewBox", "0 0 1000 14"), attr("preserveAspectRatio", "none"), attr("role", "img"), attr("aria-label", l.Label), each(l.Bars, func(b *bar) part {
			return tag("rect", class(b.Class), attr("x", b.X), attr("width", b.W), tag("title", text(b.Title)))
		}))))
}

// legend says what the bars' looks mean.
var legend = tag("p", class("key"), each([]struct{ class, word string }{{"s-ok", "as it should be"}, {"s-begin", "starts"}, {"s-end", "ends"}, {"s-warn", "impaired"}, {"s-down", "down"}, {"s-bad", "out of reach"}},
	func(x *struct{ class, word string }) part {
		return parts{tag("span", tag("i", class("k "+x.class)), text(x.word)), text(" ")}
	}))

func (c *chart) part() part {
	label := c.Name + ": "
	for _, l := range c.Lines {
		label += l.Name + " from " + l.Low + " to " + l.High + ", " + l.Last + " in the end; "
	}
	return tag("figure", tag("figcaption", text(c.Name+" "), tag("small", text("(0 to "+c.Max+")"))),
		tag("svg", attr("viewBox", "-2 -4 1004 108"), attr("preserveAspectRatio", "none"), attr("role", "img"), attr("aria-label", label),
			tag("path", class("base"), attr("d", "M0 100H1000")),
			each(c.Lines, func(l *curveView) part { return tag("path", class(l.Class), attr("d", l.Path)) })),
		tag("ul", each(c.Lines, func(l *curveView) part {
			return tag("li", tag("svg", attr("viewBox", "0 0 28 8"), attr("width", "28"), attr("height", "8"), attr("aria-hidden", "true"), tag("path", class(l.Class), attr("d", "M0 4H28"))),
				text(" "+l.Name+": "+l.Last+" "), tag("small", text("("+l.Low+"–"+l.High+")")))
		})))
}

func (v *runView) eventTable() part {
	return when(len(v.Events) > 0, tag("div", tag("h3", text("Timeline")), tag("table", class("events"), hiddenHeads("instant", "who", "what"), tag("tbody", each(v.Events, func(e *eventView) part {
		look := ""
		switch {
		case e.Broke:
			look = "broke"
		case e.Scenario:
			look = "did"
		}
		return tag("tr", attr("tabindex", "-1"), flag("data-event", true), flag("data-find", true), attr("data-x", e.X), class(look), tag("td", text(e.At)), tag("td", text(e.Who)),
			tag("td", when(e.Broke, tag("strong", text("✖ VIOLATED")), text(" ")), text(e.Text)))
	})))))
}

// hiddenHeads are a table's first row for who does not see it.
func hiddenHeads(names ...string) part {
	return tag("thead", class("gone"), tag("tr", each(names, func(s *string) part { return tag("th", attr("scope", "col"), text(*s)) })))
}

func (v *runView) scriptTable() part {
	return when(len(v.Script) > 0, tag("div", tag("h3", text("Script")), tag("table", class("script"), hiddenHeads("line", "mark", "text"), tag("tbody", each(v.Script, func(l *Line) part {
		number := strconv.Itoa(l.Number)
		var mark part
		switch l.Mark {
		case Broke:
			mark = tag("span", attr("title", "the line that led to it"), text("▶"))
		case Expects:
			mark = tag("span", attr("title", "expects the invariant that broke"), text("◀"))
		case Left:
			mark = tag("span", attr("title", "skipped"), text("skip"))
		}
		return tag("tr", attr("id", v.ID+"-line-"+number), class(string(l.Mark)), rowHead(text(number)), tag("td", mark), tag("td", tag("code", text(l.Text))))
	})))))
}

// sub is a part of a run's details that is opened by itself.
func sub(name string, open bool, of ...part) part {
	return tag("details", class("sub"), flag("open", open), tag("summary", tag("h3", text(name))), parts(of))
}

func (v *runView) strikeTable() part {
	return when(len(v.Strikes) > 0, sub("What struck ("+strconv.Itoa(len(v.Strikes))+")", v.First == nil,
		table("what struck", heads("when", "line", "action", "fate", "what it did"), each(v.Strikes, func(s *strikeView) part {
			return tag("tr", flag("data-find", true), tag("td", text(s.When)), tag("td", text(strconv.Itoa(s.Line))), tag("td", tag("code", text(s.Text))), tag("td", text(s.Fate)), tag("td", text(s.Did)))
		}))))
}

func (v *runView) lookTable() part {
	return when(len(v.Looks) > 0, sub("What was judged", v.First == nil,
		table("what was judged", heads("invariant", "#looked at", "verdict", "asked for by"), each(v.Looks, (*Look).part)),
		tag("p", text(runner.Count(v.Judged, "expectation")+" judged."))))
}

func (l *Look) part() part {
	times, by := strconv.FormatInt(l.Times, 10), ""
	if l.Expected > 0 {
		by = "line " + strconv.Itoa(l.Expected)
	}
	var verdict part
	switch {
	case l.Why != "":
		times, verdict = "–", text("not judged: "+l.Why)
	case l.Broke > 1:
		verdict = tag("b", class("bad"), textf("✖ broke %d times", l.Broke))
	case l.Broke == 1:
		verdict = tag("b", class("bad"), text("✖ broke"))
	case l.Times > 0:
		verdict = text("✔ held")
	default:
		verdict = text("○ nothing happened that it is about")
	}
	return tag("tr", flag("data-find", true), rowHead(text(l.Invariant)), tag("td", class("num"), text(times)), tag("td", verdict), tag("td", text(by)))
}

func (v *runView) skipList() part {
	return when(len(v.Skipped) > 0, sub("Skipped lines ("+strconv.Itoa(len(v.Skipped))+")", false,
		tag("ul", each(v.Skipped, func(s *Skip) part { return tag("li", textf("line %d: %s", s.Line, s.Why)) }))))
}
