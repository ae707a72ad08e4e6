package scn

import (
	"strconv"
	"strings"

	"github.com/enilab/enilab/internal/spelling"
)

// Suggest is spelling.Suggest: the known word nearest to word, "" when none is near.
func Suggest(word string, known []string) string { return spelling.Suggest(word, known) }

// didYouMean is the hint for an unknown word: the nearest known one, or all of them.
func didYouMean(word string, known []string) string {
	if s := Suggest(word, known); s != "" {
		return "did you mean " + strconv.Quote(s) + "?"
	}
	return "known: " + strings.Join(known, ", ")
}
