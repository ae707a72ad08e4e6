package verb

import (
	"strconv"
	"strings"
)

// Number is a number and its noun, which is given in the singular.
func Number(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Some is Number with a verb that agrees.
func Some(n int, noun, is, are string) string {
	if n == 1 {
		are = is
	}
	return Number(n, noun) + " " + are
}

// gone is a table or a list without what somebody removed.
func gone(count int, noun string) Strike {
	if count == 0 {
		return Miss("there are no %ss to remove", noun)
	}
	return Hit("%s", Some(count, noun, "is gone", "are gone"))
}
