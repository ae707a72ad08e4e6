package calls

import "strings"

// Compare is a line-by-line difference of two texts: "-" what only the golden one has, "+" what only the other has, and around it
// the lines that both have. It is empty when they are the same.
func Compare(golden, got string) string {
	if golden == got {
		return ""
	}
	a, b := strings.Split(strings.TrimSuffix(golden, "\n"), "\n"), strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	// common[i][j] is the length of the longest common sequence of a[i:] and b[j:]. Texts have dozens of lines.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	line := func(sign, l string) { out.WriteString(strings.TrimRight(sign+l, " ") + "\n") }
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			line("  ", a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			line("- ", a[i])
			i++
		default:
			line("+ ", b[j])
			j++
		}
	}
	return out.String()
}
