package ipam

import "testing"

// TestGrowthAfterRefusals: what is asked for at once, of 14 addresses, after EC2's refusals and answers on ENIs with
// 15.
func TestGrowthAfterRefusals(t *testing.T) {
	type g = *growth
	refused, grew := func(g g) { g.refused(7) }, func(g g) { g.grew(15) }
	for _, tt := range []struct {
		name  string
		do    []func(g)
		want  growth
		asked int
	}{
		{"nothing was refused", nil, growth{}, 14},
		{"one was", []func(g){refused}, growth{GrowAt: 7, Fails: 1}, 14},
		{"two in a row", []func(g){refused, refused}, growth{GrowAt: 7, Fails: 2}, 14},
		{"then it grew", []func(g){refused, refused, grew}, growth{}, 14},
		{"the subnet could not give 14", []func(g){func(g g) { g.halve(14) }}, growth{Ask: 7}, 7},
		{"nor 7", []func(g){func(g g) { g.halve(7) }}, growth{Ask: 4}, 4},
		{"nor 2", []func(g){func(g g) { g.halve(2) }}, growth{Ask: 1}, 1},
		{"nor one: less cannot be asked for", []func(g){func(g g) { g.halve(2); g.halve(1) }}, growth{Ask: 1}, 1},
		{"one was asked for, and refused", []func(g){func(g g) { g.halve(1) }}, growth{}, 14},
		{"it gave some: twice as many", []func(g){func(g g) { g.halve(7) }, grew}, growth{Ask: 8}, 8},
		{"until as many as fit", []func(g){func(g g) { g.halve(7) }, grew, grew}, growth{}, 14},
	} {
		var got growth
		for _, do := range tt.do {
			do(&got)
		}
		if asked := got.asked(14); got != tt.want || asked != tt.asked {
			t.Errorf("%s: %+v, asks for %d; expected %+v and %d", tt.name, got, asked, tt.want, tt.asked)
		}
	}
	if got := (&growth{Ask: 3}).asked(0); got != 1 {
		t.Errorf("a call asks for one address at least, not for %d", got)
	}
}
