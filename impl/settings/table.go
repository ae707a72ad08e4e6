package settings

import (
	"fmt"
	"io"
	"strings"
)

// maxShown is how much of a value the table shows.
const maxShown = 60

// Print writes every variable with its value and origin, and what is wrong.
func Print(w io.Writer, s *Settings, problems []Problem) error {
	var b strings.Builder
	width := 0
	for _, v := range s.Values {
		width = max(width, len(v.Name))
	}
	for _, v := range s.Values {
		fmt.Fprintf(&b, "%-*s  %-11s  %s\n", width, v.Name, v.Origin, shown(v.Value))
	}
	for _, p := range problems {
		mark := "note"
		if p.Stops {
			mark = "problem"
		}
		fmt.Fprintf(&b, "%s: %s\n", mark, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func shown(v string) string {
	if v == "" {
		return "(unset)"
	}
	q := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '·'
		}
		return r
	}, v)
	if r := []rune(q); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return q
}
