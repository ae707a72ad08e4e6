package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestOutcome goes through all judgements: each says the same by word, exit code, level, text and JSON, and only what was played whole is green.
func TestOutcome(t *testing.T) {
	regression := Finding{Kind: Regression, Scenario: "s", Check: "a", Plays: []Play{New}}
	all := []Result{played(1, "old"), played(1, "new")}
	for _, c := range []struct {
		name string
		page Page
		want Outcome
	}{
		{"not red", Page{Verdict: &Verdict{}, Results: all}, Outcome{"not red", 0, Good}},
		{"notes change nothing", Page{Verdict: &Verdict{Notes: []string{"x"}, Stale: []string{"y"}, Findings: []Finding{{Kind: Mended}, {Kind: Before}, {Kind: Accepted}, {Kind: Seldom}, {Kind: Unsure}}}, Results: all},
			Outcome{"not red", 0, Good}},
		{"red", Page{Verdict: &Verdict{Findings: []Finding{regression}}, Results: all}, Outcome{"red", 1, Bad}},
		{"a figure", Page{Verdict: &Verdict{Figures: []Figure{{Beyond: true}}}, Results: all}, Outcome{"red", 1, Bad}},
		{"an accepted figure", Page{Verdict: &Verdict{Figures: []Figure{{Beyond: true, Reason: "r"}}}, Results: all}, Outcome{"not red", 0, Good}},
		{"red, and not all known", Page{Verdict: &Verdict{Findings: []Finding{regression}, Unknown: []string{"x"}}, Results: all}, Outcome{"red", 1, Bad}},
		{"red, and interrupted", Page{Verdict: &Verdict{Findings: []Finding{regression}}, Results: all, Interrupted: true}, Outcome{"red", 1, Bad}},
		{"not known", Page{Verdict: &Verdict{Unknown: []string{"x"}}, Results: all}, Outcome{"not known", 5, Warn}},
		{"nothing played", Page{Verdict: &Verdict{}}, Outcome{"not known", 5, Warn}},
		{"interrupted", Page{Verdict: &Verdict{Unknown: []string{"x"}}, Results: all, Interrupted: true}, Outcome{"interrupted", 130, Warn}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.page.Outcome()
			if o != c.want {
				t.Errorf("%+v, expected %+v", o, c.want)
			}
			var text bytes.Buffer
			if err := c.page.Write(&text, func(word string, l Level) string { return fmt.Sprintf("[%s]%s", l, word) }); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("[%s]%s", c.want.Level, c.want.Word)
			if !strings.HasPrefix(text.String(), want+"  ") {
				t.Errorf("it is told as %q, expected it to begin with %q", text.String(), want)
			}
			c.page.Word, c.page.Exit = o.Word, o.Exit
			var back Page
			data, err := json.Marshal(&c.page)
			if err == nil {
				err = json.Unmarshal(data, &back)
			}
			if err != nil || back.Outcome() != o {
				t.Errorf("through JSON it is %+v: %v", back.Outcome(), err)
			}
		})
	}
}
