// Package spelling finds the word that was meant.
package spelling

import "strings"

// Suggest returns the known word nearest to word by edit distance, letter case aside: at most 2
// edits or a third of the word's length, whichever is more, and fewer than the word has letters.
// The first of equally near words wins; "" means that none is near.
func Suggest(word string, known []string) string {
	w := []rune(strings.ToLower(word))
	limit := max(2, len(w)/3)
	best := ""
	for _, k := range known {
		r := []rune(strings.ToLower(k))
		if len(r)-len(w) > limit || len(w)-len(r) > limit {
			continue
		}
		if d := distance(w, r); d <= limit && d < max(len(w), len(r)) {
			best, limit = k, d-1
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace to make b out of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ca := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, cb := range b {
			d := diagonal
			if ca != cb {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
