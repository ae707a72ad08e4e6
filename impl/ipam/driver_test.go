package ipam

import "testing"

// TestDeviceNumbers: an ENI takes the lowest free device index, and the next ones in turn when EC2 refuses.
func TestDeviceNumbers(t *testing.T) {
	for _, c := range []struct {
		limit int
		taken []int
		tries int
		want  int
	}{
		{4, nil, 0, 1},
		{4, []int{1}, 0, 2},
		{4, []int{2}, 0, 1},
		{4, []int{1}, 1, 3}, // somebody else has 2
		{4, []int{1}, 2, 2}, // and round again: no instance has more devices than its limit
		{4, nil, 300, 1},
		{4, nil, 301, 2},
		{4, []int{1, 2, 3}, 5, 1},
		{0, nil, 1 << 62, 1},
	} {
		n := newborn(t)
		n.Inst.Limits.ENIs = c.limit
		ix := n.newENI(eni{Stage: Created})
		for _, d := range c.taken {
			n.newENI(eni{ENI: ENI{Device: d}, Stage: Ready})
		}
		if got := n.device(ix, c.tries); got != c.want {
			t.Errorf("limit %d, taken %v, try %d: device %d, want %d", c.limit, c.taken, c.tries, got, c.want)
		}
	}
}
