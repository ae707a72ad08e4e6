package judge

import (
	"strings"
	"testing"
	"time"
)

// TestThirdPartyStays: what a third party left is judged on every snapshot and on the settled one, each thing is told once, and where nothing could be
// looked at nothing is judged.
func TestThirdPartyStays(t *testing.T) {
	rule := func(is string) Foreign { return Foreign{Name: "rule 30000", Was: "fwmark 0x4000 lookup 4000", Is: is} }
	for _, c := range []struct {
		name  string
		seen  []Foreign
		looks int64
		want  []string
	}{
		{"as it was left", []Foreign{rule("fwmark 0x4000 lookup 4000")}, 1, nil},
		{"gone", []Foreign{rule("")}, 1, []string{"rule 30000, which a third party put on node-1, is gone (it was fwmark 0x4000 lookup 4000)"}},
		{"changed", []Foreign{rule("fwmark 0x80 lookup 4000")}, 1, []string{"was fwmark 0x4000 lookup 4000 and is fwmark 0x80 lookup 4000"}},
		{"not looked at", nil, 0, nil},
	} {
		for _, settled := range []bool{false, true} {
			a := New(Config{Nodes: 1})
			s := &Snapshot{Node: 1, Up: true, ThirdParty: c.seen}
			if settled {
				a.Settle(time.Minute, s)
			} else {
				a.Judge(time.Minute, s)
			}
			if got := a.Looks(I18); got != c.looks {
				t.Errorf("%s: looked at %d times, expected %d", c.name, got, c.looks)
			}
			b := a.Clone()
			a.Judge(2*time.Minute, s)
			b.Judge(2*time.Minute, s) // which was told of it already
			for _, a := range []*Auditor{a, b} {
				v := a.Violations()
				if len(v) != len(c.want) || len(v) > 0 && (v[0].Invariant != I18 || !strings.Contains(v[0].Text, c.want[0])) {
					t.Errorf("%s: found %v, expected %q", c.name, v, c.want)
				}
			}
		}
	}
}
