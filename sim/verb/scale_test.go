package verb

import "testing"

// TestTowards: a step goes to the count and not beyond, up and down.
func TestTowards(t *testing.T) {
	for _, c := range []struct{ had, count, step, want int }{
		{1, 250, 0, 250}, {250, 0, 0, 0},
		{1, 250, 1, 2}, {249, 250, 7, 250}, {250, 0, 1, 249}, {3, 0, 7, 0}, {9, 9, 2, 9},
	} {
		if got := Towards(c.had, c.count, c.step); got != c.want {
			t.Errorf("from %d towards %d by %d: %d, expected %d", c.had, c.count, c.step, got, c.want)
		}
	}
}
