package report

import "strconv"

// document is the whole page.
func (v *view) document() part {
	return parts{raw("<!DOCTYPE html>\n"), tag("html", attr("lang", "en"), v.head(), tag("body",
		hatch,
		tag("a", class("skip"), attr("href", "#main"), text("to the details")),
		v.lead(),
		tools,
		tag("main", attr("id", "main"), v.matrix(), v.findings(), v.figures(), v.checks(), v.all(), each(v.Sections, func(w *written) part { return *w }), paragraph("note", v.Short)),
		tag("footer", text(v.By)),
		keys,
		tag("script", raw(scriptText)),
	))}
}

func (v *view) head() part {
	meta := func(which, content string) part { return tag("meta", attr("name", which), attr("content", content)) }
	return tag("head",
		tag("meta", attr("charset", "utf-8")),
		meta("viewport", "width=device-width, initial-scale=1"),
		tag("meta", attr("http-equiv", "Content-Security-Policy"), attr("content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:")),
		meta("color-scheme", "light dark"),
		meta("generator", v.By),
		tag("link", attr("rel", "icon"), attr("href", "data:,")),
		tag("title", text(v.Lead)),
		tag("style", raw(styleText)))
}

// lead is what is seen first.
func (v *view) lead() part {
	var tail part
	if v.Tail != "" {
		tail = tag("span", class("tail"), text(v.Tail))
	}
	return tag("header", class("lead "+v.Class),
		tag("p", class("what"), tag("span", class("badge"), text(v.Word)), text(" "), tag("span", class("title"), text(v.Title))),
		tag("h1", link(v.LeadLink, text(v.Head)), tail),
		v.also(),
		again(v.Command),
		each(v.Notes, func(s *string) part { return paragraph("note", *s) }))
}

func again(command string) part {
	return when(command != "", tag("p", class("again"), text("again: "), tag("code", text(command))))
}

// paragraph is a text of its own; of none there is none.
func paragraph(look, s string) part { return when(s != "", tag("p", class(look), text(s))) }

func (v *view) also() part {
	if v.Banner == nil {
		return nil
	}
	return paragraph("note", v.Banner.Also)
}

// matrix is what came of each scenario in each play, by colour, sign, word and seed.
func (v *view) matrix() part {
	if len(v.Matrix) == 0 {
		return nil
	}
	wide := attr("colspan", strconv.Itoa(len(v.Columns)))
	return tag("section", class("matrix"), tag("h2", text("What was played")), tag("table",
		tag("thead", tag("tr", each(v.Columns, func(s *string) part { return tag("th", attr("scope", "col"), text(*s)) }))),
		each(v.Matrix, func(r *Row) part {
			return tag("tbody", flag("data-find", true), tag("tr", tag("th", attr("scope", "rowgroup"), class("name"), wide, text(r.Name))),
				tag("tr", each(r.Cells, func(c *Cell) part {
					return tag("td", class("cell "+string(c.Class)), sign(icons[string(c.Class)]), text(c.Text), when(c.Seeds != "", text(" "), tag("small", text(c.Seeds))))
				})))
		})))
}

// findings are what was found, each once. What needs no action is folded.
func (v *view) findings() part {
	if len(v.Findings) == 0 {
		return nil
	}
	shown, folded := parts{}, parts{}
	for i := range v.Findings {
		if f := v.finding(i); v.Findings[i].Folded {
			folded = append(folded, f)
		} else {
			shown = append(shown, f)
		}
	}
	return tag("section", tag("h2", text("What was found")), shown,
		when(len(folded) > 0, sub("Nothing to act upon ("+strconv.Itoa(len(folded))+")", false, folded)))
}

func (v *view) finding(i int) part {
	f := &v.Findings[i]
	evidence := ""
	if n := f.Pair; n > 0 && n <= len(v.Page.Pairs) {
		evidence = v.pairIDs[&v.Page.Pairs[n-1]]
	}
	return tag("div", class("finding "+string(f.Class)), attr("id", findingID(i)), flag("data-find", true),
		tag("p", badge(string(f.Class), icons[string(f.Class)], f.Kind), text(" "), tag("b", text(f.Line))),
		tag("ul", class("facts"), each(f.Facts, func(s *string) part { return tag("li", text(*s)) })),
		again(f.Command),
		when(evidence != "", tag("p", link(evidence, text("timeline, script and curves")))),
		when(f.Text != "", tag("details", tag("summary", text("what was told")), tag("pre", text(f.Text)))))
}

// all is a row for each run or pair, where there are several.
func (v *view) all() part {
	what := "All runs"
	if len(v.Pairs) > 0 {
		what = "All pairs"
	}
	return when(len(v.Rows) > 1, tag("section", class("all"), tag("h2", text(what)),
		table("table of all", heads("verdict", "what", "seed", "what came of it"), each(v.Rows, func(r *rowView) part {
			return tag("tr", class("row"), flag("data-find", true), tag("td", class(r.Class), sign(r.Icon), text(r.Word)), rowHead(link(r.Link, text(r.Name))), tag("td", text(r.Seed)), tag("td", text(r.Text)))
		})),
		paragraph("", v.MoreRows)))
}

func (v *view) figures() part {
	return when(len(v.Figures) > 0, tag("section", tag("h2", text("Figures")),
		table("figures", heads("figure", "#old", "#new", "#tolerated", "verdict"), each(v.Figures, func(f *Figure) part {
			number := func(x float64) part {
				return tag("td", class("num"), text(strconv.FormatFloat(x, 'g', -1, 64)+" "+f.Unit))
			}
			verdict := tag("td", class("good"), text("✔ within"))
			if f.Beyond {
				verdict = tag("td", class("bad"), text("✖ beyond"))
			}
			return tag("tr", flag("data-find", true), rowHead(text(f.Name)), number(f.Old), number(f.New), tag("td", class("num"), text("+"+f.Percent()+" %")), verdict)
		}))))
}

func (v *view) checks() part {
	return when(len(v.Checks) > 0, tag("section", tag("h2", text("What was asked")),
		table("what was asked", heads("verdict", "table", "row", "what came of it"), each(v.Checks, func(c *Check) part {
			return tag("tr", class("row"), flag("data-find", true), tag("td", class(c.Class()), sign(c.Icon()), text(c.Verdict)), tag("td", text(c.Suite)), rowHead(text(c.Name)), tag("td", text(c.Text)))
		}))))
}

// table is one that is wider than a phone, perhaps, and is moved to and fro then. label is its name for who does not see it.
func table(label string, head, body part) part {
	return tag("div", class("scroll"), attr("tabindex", "0"), attr("role", "region"), attr("aria-label", label), tag("table", head, tag("tbody", body)))
}

// heads is a table's first row. A column of numbers begins with #.
func heads(names ...string) part {
	return tag("thead", tag("tr", each(names, func(s *string) part {
		if (*s)[0] == '#' {
			return tag("th", attr("scope", "col"), class("num"), text((*s)[1:]))
		}
		return tag("th", attr("scope", "col"), text(*s))
	})))
}

func rowHead(of part) part { return tag("th", attr("scope", "row"), of) }

// sign stands before a word that says the same: no colour and no sign speaks alone.
func sign(icon string) part {
	return parts{tag("span", attr("aria-hidden", "true"), text(icon)), text(" ")}
}

// hatch is what marks out of reach.
var hatch = tag("svg", class("defs"), attr("aria-hidden", "true"), attr("focusable", "false"), tag("defs",
	tag("pattern", attr("id", "hatch"), attr("width", "6"), attr("height", "6"), attr("patternUnits", "userSpaceOnUse"), attr("patternTransform", "rotate(45)"),
		tag("rect", class("hatch-back"), attr("width", "6"), attr("height", "6")), tag("rect", class("hatch-line"), attr("width", "2.5"), attr("height", "6")))))

// tools is the bar with the filter.
var tools = tag("nav", class("tools"), attr("aria-label", "this page"),
	tag("label", attr("for", "filter"), text("filter "), key("/")), text(" "),
	tag("input", attr("id", "filter"), attr("type", "search"), attr("autocomplete", "off"), attr("spellcheck", "false"), attr("placeholder", "pod, ENI, scenario, word")),
	tag("span", attr("id", "hits"), attr("role", "status")),
	tag("button", attr("id", "help"), attr("type", "button"), attr("aria-haspopup", "dialog"), text("keys "), key("?")))

func key(s string) part { return tag("kbd", text(s)) }

// keys is the help.
var keys = tag("dialog", attr("id", "keys"), attr("aria-labelledby", "keys-title"), tag("h2", attr("id", "keys-title"), text("Keys")),
	tag("dl", keyDoc("next event", "j", "↓"), keyDoc("event before", "k", "↑"), keyDoc("to the violation", "v"), keyDoc("next run, run before", "n", "p"),
		keyDoc("filter", "/"), keyDoc("end the filter, close this", "Esc"), keyDoc("this", "?")),
	tag("form", attr("method", "dialog"), tag("button", text("close"))))

func keyDoc(what string, of ...string) part {
	return parts{tag("dt", each(of, func(s *string) part { return parts{key(*s), text(" ")} })), tag("dd", text(what))}
}
