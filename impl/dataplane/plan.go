package dataplane

import (
	"slices"
	"strings"
)

// Plan is an ordered list of operations. A crash may leave any prefix of it done; every operation but
// CreateVeth may be repeated, so the remedy is the removal, or the repair.
type Plan struct {
	Ops []Op
}

// Empty says that there is nothing to do.
func (p Plan) Empty() bool { return len(p.Ops) == 0 }

// Equal says whether both plans do the same in the same order.
func (p Plan) Equal(q Plan) bool { return slices.Equal(p.Ops, q.Ops) }

// String is one line per operation, each ended by a newline; an empty plan is the empty string.
func (p Plan) String() string {
	var b strings.Builder
	for i := range p.Ops {
		b.WriteString(p.Ops[i].String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Diff is how to read p as q: lines that only p has begin with "-", lines that only q has with "+",
// common lines with two spaces. Equal plans have the empty diff.
func (p Plan) Diff(q Plan) string {
	if p.Equal(q) {
		return ""
	}
	common := commonTail(p.Ops, q.Ops)
	var b strings.Builder
	line := func(sign string, op *Op) {
		b.WriteString(sign)
		b.WriteString(op.String())
		b.WriteByte('\n')
	}
	i, j := 0, 0
	for i < len(p.Ops) || j < len(q.Ops) {
		switch {
		case i < len(p.Ops) && j < len(q.Ops) && p.Ops[i] == q.Ops[j]:
			line("  ", &p.Ops[i])
			i, j = i+1, j+1
		case j == len(q.Ops) || i < len(p.Ops) && common[i+1][j] >= common[i][j+1]:
			line("- ", &p.Ops[i])
			i++
		default:
			line("+ ", &q.Ops[j])
			j++
		}
	}
	return b.String()
}

// commonTail[i][j] is the length of the longest common subsequence of p[i:] and q[j:].
func commonTail(p, q []Op) [][]int {
	t := make([][]int, len(p)+1)
	for i := range t {
		t[i] = make([]int, len(q)+1)
	}
	for i := len(p) - 1; i >= 0; i-- {
		for j := len(q) - 1; j >= 0; j-- {
			if p[i] == q[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}
