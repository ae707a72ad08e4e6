package gate

import (
	"strings"
	"testing"
)

// TestHeadline: the first line names who does what and why, and a reason comes before its consequence.
func TestHeadline(t *testing.T) {
	all := []Result{played(1, "old"), played(1, "new")}
	reach := Finding{Kind: Regression, Check: "every live pod is reachable", Plays: []Play{New, Upgrade}, Text: "web-1 is out of reach"}
	never := Finding{Kind: Regression, Check: serves, Plays: []Play{New}, Text: "no daemon serves\n" +
		`{"level":"info","ts":"x","msg":"starting"}` + "\n" + `{"level":"error","msg":"Failed to describe","error":"operation error EC2: DescribeSecurityGroups, UnauthorizedOperation: You are not authorized"}` + "\n" +
		`{"level":"debug","msg":"AttachNetworkInterface is next"}`}
	ends := Finding{Kind: Regression, Check: EndsByItself, Plays: []Play{UpgradeImage}, Text: "its last words:\n" + `{"level":"info","msg":"starting"}` + "\n" + `{"level":"error","msg":"neither IPv4 nor IPv6","error":"bad mode"}`}
	broke := ends
	broke.Text, broke.Plays = "ended with exit code 2:\nlog\npanic: runtime error: nil pointer\n\ngoroutine 1", []Play{Rollback}
	for _, c := range []struct {
		name string
		page Page
		want string
	}{
		{"a refused action", Page{Verdict: &Verdict{Findings: []Finding{reach, never}}}, "1.22.1 never serves: EC2 refuses DescribeSecurityGroups, which the role of 1.21.2 does not allow"},
		{"a log line's message", Page{Verdict: &Verdict{Findings: []Finding{never, reach, ends}}}, "1.22.1 with the manifest of 1.21.2 ends by itself: neither IPv4 nor IPv6: bad mode"},
		{"a daemon that ends after the pods were cut off", Page{Verdict: &Verdict{Findings: []Finding{
			{Kind: Regression, Check: EndsByItself, Plays: []Play{New}, At: 258, Text: "text file busy"},
			{Kind: Regression, Check: "every live pod is reachable", Plays: []Play{New, Upgrade}, At: 104, Text: "web-1 is out of reach"}}}},
			`1.22.1 breaks "every live pod is reachable": web-1 is out of reach`},
		{"metadata that requires a token", Page{Verdict: &Verdict{Findings: []Finding{{Kind: Regression, Check: serves, Plays: []Play{New},
			Text: "each of 14 ADDs failed; the daemon's last line: sed: unterminated (metadata refuses /latest/meta-data/local-ipv4 without a token)"}}}},
			"1.22.1 never serves: metadata refuses /latest/meta-data/local-ipv4 without a token"},
		{"a panic, and metadata that requires a token", Page{Verdict: &Verdict{Findings: []Finding{{Kind: Regression, Check: EndsByItself, Plays: []Play{New},
			Text: "it said \"panic: nil map\" (metadata refuses /latest/meta-data/tags without a token)"}}}},
			"1.22.1 ends by itself: panic: nil map\" (metadata refuses /latest/meta-data/tags without a token)"},
		{"a panic", Page{Verdict: &Verdict{Findings: []Finding{broke}}}, "1.21.2 after a rollback from 1.22.1 ends by itself: panic: runtime error: nil pointer"},
		{"an invariant", Page{Verdict: &Verdict{Findings: []Finding{reach}}}, `1.22.1 breaks "every live pod is reachable": web-1 is out of reach`},
		{"accepted is none", Page{Verdict: &Verdict{Findings: []Finding{{Kind: Accepted, Check: serves}, reach}}}, `1.22.1 breaks "every live pod is reachable": web-1 is out of reach`},
		{"a figure", Page{Verdict: &Verdict{Figures: []Figure{{Name: "ADD, p50", Unit: "ms", Old: 1, New: 2, Beyond: true}}}}, "ADD, p50: 2 ms, was 1 ms: more than 0 % and 0 ms dearer"},
		{"not known", Page{Verdict: &Verdict{Unknown: []string{"the old version never serves", "b"}}}, "the old version never serves (and 1 more)"},
		{"an old version that EC2 refuses", Page{Verdict: &Verdict{Unknown: []string{"change, seed 1: " + heldNothing + never.Text}}},
			"1.21.2 does not serve even before the change, so nothing held: EC2 refuses DescribeSecurityGroups, which its role does not allow"},
		{"interrupted", Page{Verdict: &Verdict{}, Interrupted: true}, "interrupted: 2 of 2 plays were played, and nothing broke in them that held before"},
		{"not red", Page{Verdict: &Verdict{}}, "nothing that cni 1.21.2 holds breaks with cni 1.22.1, in 2 plays"},
	} {
		c.page.From, c.page.To, c.page.Results = "cni 1.21.2", "cni 1.22.1", all
		if got := c.page.Headline(); got != c.want {
			t.Errorf("%s: %s\nexpected %s", c.name, got, c.want)
		}
	}
	if got := Reason(strings.Repeat("long ", 1000)); len([]rune(got)) > mostReason {
		t.Errorf("a reason has %d characters", len(got))
	}
}

// TestMatrixIsGreenOnlyWhereItIsKnown: a cell is good only if all its seeds were played and broke nothing that held before.
func TestMatrixIsGreenOnlyWhereItIsKnown(t *testing.T) {
	lost, broken := played(2, "new"), played(1, "upgrade")
	lost.Unknown = "the machine was slow"
	broken.Broken = []Broken{{Check: "a"}}
	p := &Page{Results: []Result{played(1, "old"), played(1, "new"), lost, broken}, Verdict: &Verdict{Findings: []Finding{{Kind: Regression, Scenario: broken.Scenario, Variant: broken.Variant, Check: "a", Plays: []Play{Upgrade}}}}}
	row := p.Matrix()[0]
	for i, want := range []Level{Good, Warn, "", Bad, "", ""} {
		if row.Cells[i].Level != want {
			t.Errorf("%s is %q, expected %q: %+v", Plays()[i], row.Cells[i].Level, want, row.Cells[i])
		}
	}
	p.Verdict.Unknown = []string{row.Name + ": the old version never serves"}
	if c := p.Matrix()[0].Cells[0]; c.Level != Warn {
		t.Errorf("a scenario of which nothing is known is %q: %+v", c.Level, c)
	}
}
