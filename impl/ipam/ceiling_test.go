package ipam

import (
	"testing"
	"time"
)

// TestCeilingAfterRefusedAttaches: what a node believes of how many ENIs EC2 lets its instance of a type for four
// have, after what EC2 did.
func TestCeilingAfterRefusedAttaches(t *testing.T) {
	const limit, m = 4, time.Minute
	type c = *ceiling
	barAt := func(at time.Duration, has int) func(c) { return func(c c) { c.bar(at, has) } }
	unbar := func(at time.Duration, has int) func(c) { return func(c c) { c.unbar(at, has, limit) } }
	attached := func(has int) func(c) { return func(c c) { c.attached(has) } }
	for _, tt := range []struct {
		name string
		do   []func(c)
		want ceiling
	}{
		{"nothing was refused", []func(c){unbar(m, 2), attached(2)}, ceiling{}},
		{"one was", []func(c){barAt(m, 2)}, ceiling{Most: 2, MoreAt: 2 * m, Bars: 1}},
		{"two that were on their way together", []func(c){barAt(m, 2), barAt(m+1, 2)}, ceiling{Most: 2, MoreAt: 2 * m, Bars: 1}},
		{"and one of the node's is lost beside", []func(c){barAt(m, 2), barAt(3*m, 1)}, ceiling{Most: 1, MoreAt: 5 * m, Bars: 2}},
		{"it is too early to try", []func(c){barAt(m, 2), unbar(2*m-1, 2)}, ceiling{Most: 2, MoreAt: 2 * m, Bars: 1}},
		{"one more is tried", []func(c){barAt(m, 2), unbar(2*m, 2)}, ceiling{Most: 3, MoreAt: 2*m + probePatience, Probe: true, Bars: 1}},
		{"which takes too long, and another is", []func(c){barAt(m, 1), unbar(2*m, 1), unbar(2*m+probePatience, 1)},
			ceiling{Most: 3, MoreAt: 2*m + 2*probePatience, Probe: true, Bars: 1}},
		{"it is refused: the pause doubles", []func(c){barAt(m, 2), unbar(2*m, 2), barAt(3*m, 2)}, ceiling{Most: 2, MoreAt: 5 * m, Bars: 2}},
		{"again and again, up to an hour", []func(c){func(c c) { c.Bars = 1 << 40 }, barAt(m, 2)}, ceiling{Most: 2, MoreAt: m + maxMoreAfter, Bars: 1<<40 + 1}},
		{"it is attached", []func(c){barAt(m, 2), unbar(2*m, 2), attached(3)}, ceiling{MoreAt: 2*m + probePatience}},
		{"another is, in the place of one that went", []func(c){barAt(m, 2), unbar(2*m, 2), attached(2)},
			ceiling{Most: 3, MoreAt: 2*m + probePatience, Probe: true, Bars: 1}},
		{"one is, and none was tried", []func(c){barAt(m, 2), attached(2)}, ceiling{Most: 2, MoreAt: 2 * m, Bars: 1}},
		{"more are than it believed", []func(c){barAt(m, 2), unbar(m, 3)}, ceiling{MoreAt: 2 * m}},
		{"all that the type may have", []func(c){barAt(m, limit), unbar(m, limit)}, ceiling{MoreAt: 2 * m}},
		{"the last one of its type is tried", []func(c){barAt(m, 3), unbar(2*m, 3), unbar(2*m, 3)},
			ceiling{Most: 4, MoreAt: 2*m + probePatience, Probe: true, Bars: 1}},
	} {
		var got ceiling
		for _, do := range tt.do {
			do(&got)
		}
		if got != tt.want {
			t.Errorf("%s: %+v, expected %+v", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		ceiling      ceiling
		bound, shown int // of limit
	}{
		{ceiling{}, limit, 0},
		{ceiling{Most: 2}, 2, 2},
		{ceiling{Most: 3, Probe: true}, 3, 2},
		{ceiling{Most: 9}, limit, 9},
	} {
		if bound, shown := tt.ceiling.bound(limit), tt.ceiling.shown(); bound != tt.bound || shown != tt.shown {
			t.Errorf("%+v: bound %d, shown %d; expected %d and %d", tt.ceiling, bound, shown, tt.bound, tt.shown)
		}
	}
}
