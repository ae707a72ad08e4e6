package report_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
)

// play runs a scenario of the repository, with a mutant alone if one is named, and gives its runs.
func play(t *testing.T, name, mutant string) []report.Run {
	t.Helper()
	data := must.Get(fs.ReadFile(scenarios.Files, name))(t)
	c := must.Get(runner.Load(runner.Sim(), "scenarios/"+name, data))(t)
	o := runner.Options{Seed: runner.DefaultSeed, Record: true}
	if mutant != "" {
		m, ok := mutants.ByName(mutant)
		if !ok {
			t.Fatalf("no mutant %s", mutant)
		}
		o.Against = &m
	}
	return report.Of(c.Run(o))
}

func html(t *testing.T, p *report.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, report.HTML(&b, p))
	return b.Bytes()
}

func red(t *testing.T) *report.Page {
	return &report.Page{Title: "run", By: "enilab test", Command: "enilab run scenarios/socket-mismatch.scn --against recover-from-runtime-only",
		Runs: play(t, "socket-mismatch.scn", "recover-from-runtime-only")}
}

func green(t *testing.T) *report.Page {
	return &report.Page{Title: "run", By: "enilab test", Command: "enilab run scenarios/drift.scn", Runs: play(t, "drift.scn", "")}
}

// gate is a page of a pair that broke, one that was mended, and figures.
func gate(t *testing.T) *report.Page {
	bad, good := play(t, "socket-mismatch.scn", "recover-from-runtime-only"), play(t, "socket-mismatch.scn", "")
	bad[0].System, good[0].System = "amazon-vpc-cni-k8s 1.5.3", "amazon-vpc-cni-k8s 1.5.2"
	return &report.Page{Title: "gate from amazon-vpc-cni-k8s@1.5.2 to amazon-vpc-cni-k8s@1.5.3", By: "enilab test", Command: "enilab gate --from amazon-vpc-cni-k8s@1.5.2 --to amazon-vpc-cni-k8s@1.5.3",
		Banner:  &report.Banner{Word: "red", Class: report.Bad, Line: "1.5.3 after an upgrade from 1.5.2 never serves: EC2 refuses DescribeSecurityGroups, which the role of 1.5.2 does not allow", Also: "2 regressions, 1 mended"},
		Columns: []string{"old", "new", "upgrade image", "upgrade", "rollback image", "rollback"},
		Matrix: []report.Row{{Name: "socket-mismatch", Cells: []report.Cell{{Class: report.Good, Text: "held", Seeds: "seed 1, 2, 3"}, {Class: report.Good, Text: "held", Seeds: "seed 1"}, {Class: report.Bad, Text: "broke", Seeds: "seed 1, 2, 3"},
			{Class: report.Bad, Text: "broke", Seeds: "seed 1, 2 of 3 seeds"}, {Class: report.None, Text: "not asked for"}, {Class: report.Warn, Text: "not known", Seeds: "seed 1"}}},
			{Name: "change (wrong=absent)", Cells: []report.Cell{{Class: report.Good, Text: "held", Seeds: "seed 1"}, {Class: report.Good, Text: "as before", Seeds: "seed 1"}, {Class: report.Warn, Text: "seldom", Seeds: "seed 1 of 3 seeds"}, {}, {}, {}}}},
		Findings: []report.Finding{{Kind: "regression", Class: report.Bad, Line: "1.5.3 after an upgrade from 1.5.2 never serves: EC2 refuses DescribeSecurityGroups, which the role of 1.5.2 does not allow", Pair: 2,
			Facts: []string{"socket-mismatch: a daemon that runs serves", "cause: the upgrade", "plays: upgraded, image only; upgraded with the new manifest", "seeds: it broke with 3 of 3, 1 2 3", "first at 1:44, the change is at 1:30"},
			Text:  "{\"level\":\"error\",\"msg\":\"" + strings.Repeat("a long line of a daemon ", 30) + "\"}", Command: "enilab gate --from amazon-vpc-cni-k8s@1.5.2 --to amazon-vpc-cni-k8s@1.5.3 --plays upgrade-image --seeds 1 --only socket-mismatch --no-doubt"},
			{Kind: "seldom", Class: report.Warn, Line: "1.5.3 breaks “nothing is leaked”: a rule is left"}, {Kind: "mended", Class: report.Good, Line: "1.5.2 breaks “nothing is leaked”", Folded: true}},
		Pairs: []report.Pair{
			{Scenario: "drift", Play: "new version", Change: report.Mended, Old: &bad[1], New: &good[1]},
			{Scenario: "socket-mismatch", Play: "upgraded in the middle, image only", Change: report.Regression, Why: "what held before does not after the change", Old: &good[0], New: &bad[0]},
			{Scenario: "churn", Play: "rolled back in the middle", Change: report.Unknown, Why: "the old version does not start"}},
		Figures: []report.Figure{{Name: "ADD, p50", Unit: "ms", Old: 41, New: 43, Band: .25}, {Name: "EC2 calls, DescribeNetworkInterfaces", Old: 120, New: 300, Band: .1, Beyond: true}}}
}

// TestFirstLine: what broke, where and when is in the first line, with the line of the script that led to it.
func TestFirstLine(t *testing.T) {
	r := play(t, "socket-mismatch.scn", "recover-from-runtime-only")[0]
	const want = "VIOLATED 3:02.2 node-1: no eni is freed with a live pod on it – freed eni-B (eni-0ae6170280656bcc0) with 3 live pods on it, as web-9vxf52hqbl: " +
		"expected none; 1m2.2s after node-1 restart AWS_VPC_K8S_CNI_EXTERNALSNAT=true (socket-mismatch.scn:17)"
	if got := r.Sentence(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	page := string(html(t, &report.Page{Title: "run", Runs: []report.Run{r}}))
	if i := strings.Index(page, "<h1>"); !strings.Contains(page[i:i+300], "VIOLATED 3:02.2 node-1: no eni is freed with a live pod on it") {
		t.Errorf("the page begins with %s", page[i:i+300])
	}
	for _, c := range []struct {
		at   time.Duration
		want string
	}{{0, "0:00"}, {185 * time.Second, "3:05"}, {182400 * time.Millisecond, "3:02.4"}, {time.Hour + 65*time.Second, "1:01:05"}, {-12 * time.Second, "-0:12"}, {59960 * time.Millisecond, "1:00"}} {
		if got := report.Clock(c.at); got != c.want {
			t.Errorf("%v is %s, expected %s", c.at, got, c.want)
		}
	}
}

// TestSizes: a page stays small, also of 500 nodes and of many runs.
func TestSizes(t *testing.T) {
	const most = 2_000_000
	pages := map[string]*report.Page{"red": red(t), "green": green(t), "gate": gate(t)}
	if !testing.Short() {
		runs := play(t, "churn.scn", "")
		many := &report.Page{Title: "run"}
		for i := range 2000 {
			r := runs[i%len(runs)]
			r.Seed = uint64(i)
			many.Runs = append(many.Runs, r)
		}
		pages["many"] = many
		pages["fleet"] = &report.Page{Title: "run", Runs: play(t, "fleet-burst.scn", "")}
	}
	for name, p := range pages {
		if n := len(html(t, p)); n > most {
			t.Errorf("%s: %d bytes, expected at most %d", name, n, most)
		} else {
			t.Logf("%s: %d bytes of %d runs", name, n, len(p.Runs)+2*len(p.Pairs))
		}
	}
}

// TestBrowser: the page works in a browser: nothing complains, nothing is asked of a network, keys lead through the events, it fits a phone, it prints.
func TestBrowser(t *testing.T) {
	b := openChromium(t)
	pages := []struct {
		name string
		page *report.Page
	}{{"red", red(t)}, {"green", green(t)}, {"gate", gate(t)}}
	if !testing.Short() {
		pages = append(pages, struct {
			name string
			page *report.Page
		}{"fleet", &report.Page{Title: "run", Command: "enilab run scenarios/fleet-burst.scn", Runs: play(t, "fleet-burst.scn", "")}})
	}
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			b.t = t
			text := html(t, p.page)
			b.size(1280, 1600, false)
			b.scheme("light")
			b.open(text)
			b.screenshot(p.name + "-desk")
			if p.name == "red" {
				keyboard(b)
			}
			if p.name == "gate" {
				tenSeconds(b)
			}
			b.scheme("dark")
			b.screenshot(p.name + "-dark")
			b.scheme("light")
			b.size(390, 844, true)
			b.open(text)
			b.eval(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil)
			var wide int
			if b.eval("document.documentElement.scrollWidth", &wide); wide > 390 {
				t.Errorf("it is %d pixels wide on a phone of 390: %s", wide, b.text(`Array.from(document.querySelectorAll("body *")).filter(e=>e.getBoundingClientRect().right>391&&!e.closest(".scroll")&&!e.closest(".over")).slice(0,5).map(e=>e.tagName+"."+e.className+" "+e.textContent.slice(0,40)).join("; ")`))
			}
			b.open(text)
			b.size(390, 2400, true)
			b.screenshot(p.name + "-phone")
			if n := b.pdf(p.name); n < 10_000 {
				t.Errorf("it prints as %d bytes", n)
			}
			if c := b.complaints(); len(c) > 0 {
				t.Errorf("the browser complains: %q", c)
			}
			headings(b)
		})
	}
}

// tenSeconds: who opens a gate's page sees at once what broke and in which play, each finding once and evidence only when asked for, on a phone too.
func tenSeconds(b *chromium) {
	b.t.Helper()
	for _, c := range []struct {
		wide, high int
		phone      bool
	}{{1280, 800, false}, {390, 844, true}} {
		b.size(c.wide, c.high, c.phone)
		for what, expression := range map[string]string{
			"the reason is in the first line":      `document.querySelector("h1").textContent.includes("EC2 refuses DescribeSecurityGroups")`,
			"the matrix is on the first screen":    `document.querySelector(".matrix tbody td").getBoundingClientRect().bottom < innerHeight`,
			"all six plays are beside each other":  `Array.from(document.querySelectorAll(".matrix .cell")).every(e=>e.getBoundingClientRect().right <= innerWidth)`,
			"evidence is closed":                   `Array.from(document.querySelectorAll(".pair,.finding details")).every(e=>!e.open)`,
			"what is not known is no green":        `getComputedStyle(document.querySelector(".cell.warn")).backgroundColor !== getComputedStyle(document.querySelector(".cell.good")).backgroundColor`,
			"the finding leads to its evidence":    `document.querySelector(".finding a") !== null`,
			"the command that plays it is with it": `document.querySelector(".finding .again").textContent.includes("--plays upgrade-image --seeds 1 --only socket-mismatch")`,
		} {
			if b.text(expression) != "true" {
				b.t.Errorf("%d pixels wide: not so: %s", c.wide, what)
			}
		}
	}
	b.size(1280, 1600, false)
}

// keyboard goes through the events and the filter.
func keyboard(b *chromium) {
	b.t.Helper()
	const here = `document.activeElement.textContent.replace(/\s+/g," ").trim()`
	b.press("j")
	if got := b.text(here); !strings.Contains(got, "VIOLATED no eni is freed") {
		b.t.Errorf("j leads to %q, expected the violation", got)
	}
	b.press("k")
	if got := b.text(here); !strings.Contains(got, "DetachNetworkInterface") {
		b.t.Errorf("k leads to %q, expected the event before", got)
	}
	b.press("ArrowUp")
	if got := b.text(here); !strings.Contains(got, "eni-B taken over") {
		b.t.Errorf("the arrow leads to %q", got)
	}
	if got := b.text(`getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
		b.t.Errorf("the focus is not seen: outline %s", got)
	}
	if got := b.text(`document.querySelectorAll(".over u.on").length`); got != "1" {
		b.t.Errorf("the event is shown in %s lanes' charts, expected 1", got)
	}
	b.press("?")
	if got := b.text(`document.getElementById("keys").open`); got != "true" {
		b.t.Error("? opens no help")
	}
	b.eval(`document.getElementById("keys").close()`, nil)
	b.press("/")
	if got := b.text("document.activeElement.id"); got != "filter" {
		b.t.Errorf("/ leads to %q", got)
	}
	for _, c := range "detach" {
		b.press(string(c))
	}
	if got := b.text(`document.getElementById("hits").textContent`); !strings.HasSuffix(got, "rows") && !strings.HasSuffix(got, "row") {
		b.t.Errorf("the filter says %q", got)
	}
	if got := b.text(`Array.from(document.querySelectorAll("[data-event]")).filter(e=>e.checkVisibility()).length`); got != "1" {
		b.t.Errorf("%s events are left, expected 1", got)
	}
	b.press("Escape")
	if got := b.text(`document.querySelectorAll(".hidden").length`); got != "0" {
		b.t.Errorf("%s rows stay hidden", got)
	}
	b.press("n")
	if got := b.text("document.activeElement.tagName"); got != "SUMMARY" {
		b.t.Errorf("n leads to %s", got)
	}
}

// headings: they form a tree, tables have heads, pictures have names, and colours can be told apart.
func headings(b *chromium) {
	b.t.Helper()
	for what, expression := range map[string]string{
		"one h1":               `document.querySelectorAll("h1").length === 1`,
		"no level is skipped":  `Array.from(document.querySelectorAll("h1,h2,h3")).every((h,i,a)=>i===0||Number(h.tagName[1])-Number(a[i-1].tagName[1])<=1)`,
		"tables have heads":    `Array.from(document.querySelectorAll("table")).every(t=>t.querySelector("th"))`,
		"pictures have names":  `Array.from(document.querySelectorAll("svg[role=img]")).every(s=>s.getAttribute("aria-label"))`,
		"ids are there once":   `new Set(Array.from(document.querySelectorAll("[id]")).map(e=>e.id)).size === document.querySelectorAll("[id]").length`,
		"links lead somewhere": `Array.from(document.querySelectorAll('a[href^="#"]')).every(a=>document.getElementById(a.getAttribute("href").slice(1)))`,
		"a language":           `document.documentElement.lang === "en"`,
		"a title":              `document.title.length > 3`,
	} {
		if b.text(expression) != "true" {
			b.t.Errorf("not so: %s", what)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		if got := b.text(contrast); got != "" {
			b.t.Errorf("%s: too little contrast: %s", scheme, got)
		}
	}
}

// contrast names texts whose colour is too near to what is behind them (WCAG 2, AA: 4.5 to 1).
const contrast = `(() => {
  const rgb = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > .9) return c.slice(0, 3); } return matchMedia("(prefers-color-scheme:dark)").matches ? [13, 17, 23] : [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || e.closest("svg") || !Array.from(e.childNodes).some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(e.tagName + "." + e.className + " " + ratio.toFixed(1) + " " + e.textContent.trim().slice(0, 20));
  }
  return Array.from(new Set(bad)).slice(0, 5).join("; ");
})()`
