package cli

import (
	"io"
	"strings"
)

// pageWidth is how wide tables get: two fit side by side on a wide screen, and one in a report.
const pageWidth = 120

// column of a table.
type column struct {
	head  string
	width int
}

// table writes rows under a head. Cells wrap at blanks, and inside words that are wider than the column.
func table(w io.Writer, cols []column, rows [][]string) error {
	var b strings.Builder
	heads, rule := make([]string, len(cols)), make([]string, len(cols))
	for i, c := range cols {
		heads[i], rule[i] = c.head, strings.Repeat("-", c.width)
	}
	for _, r := range append([][]string{heads, rule}, rows...) {
		row(&b, cols, r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func row(b *strings.Builder, cols []column, cells []string) {
	lines := make([][]string, len(cols))
	height := 1
	for i, c := range cols {
		lines[i] = wrap(cells[i], c.width)
		height = max(height, len(lines[i]))
	}
	for y := range height {
		var line strings.Builder
		for i, c := range cols {
			cell := ""
			if y < len(lines[i]) {
				cell = lines[i][y]
			}
			line.WriteString(cell + strings.Repeat(" ", max(0, c.width-columns(cell))+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// wrap breaks text into lines of at most width characters. "\n" always breaks.
func wrap(text string, width int) []string {
	var out []string
	for part := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(part) {
			for columns(word) > width {
				if line != "" {
					out, line = append(out, line), ""
				}
				n := cut(word, width)
				out = append(out, word[:n])
				word = word[n:]
			}
			switch {
			case line == "":
				line = word
			case columns(line)+1+columns(word) <= width:
				line += " " + word
			default:
				out, line = append(out, line), word
			}
		}
		out = append(out, line)
	}
	return out
}

// cut is where a word that is too wide is broken: behind a hyphen or a slash if there is one, as bytes.
func cut(word string, width int) int {
	n := 0
	for i, r := range word {
		if n += runeColumns(r); n > width && i > 0 { // at least one, or it never ends
			if at := strings.LastIndexAny(word[:i], "-/"); at > 0 {
				return at + 1
			}
			return i
		}
	}
	return len(word)
}

// columns is how wide text is on a terminal.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 2 for the scripts of East Asia (Unicode Standard Annex 11, the wide blocks that reports are quoted in).
func runeColumns(r rune) int {
	if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xff60) {
		return 2
	}
	return 1
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
