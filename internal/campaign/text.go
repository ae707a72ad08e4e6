package campaign

import (
	"fmt"
	"strings"
	"time"
)

// column is where lines of prose end.
const column = 140

// Paragraph is a text with a first word in front, below which the other lines begin.
func Paragraph(front, text string) string {
	var b strings.Builder
	line := front
	for i, w := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(w) > column {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(front)) + w
			continue
		}
		if i > 0 {
			line += " "
		}
		line += w
	}
	return b.String() + line + "\n"
}

// Cell is a text as a table of Markdown takes it.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
}

// Clock prints an instant as timelines do, to the second.
func Clock(d time.Duration) string {
	if d < 0 {
		return "-" + Clock(-d)
	}
	s := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
