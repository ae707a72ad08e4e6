package sim

import (
	"slices"
	"testing"
)

// TestAnybodysVerbsExist: what is said about a verb is said about one that there is, once, and with a reason.
func TestAnybodysVerbsExist(t *testing.T) {
	var keys []string
	for _, v := range Verbs() {
		keys = append(keys, v.Key())
		if s := v.Anybody(); s.Never && s.Why == "" {
			t.Errorf("%s: it is not for any CNI, and nobody says why", v.Key())
		}
	}
	for key, s := range anybody {
		switch {
		case !slices.Contains(keys, key):
			t.Errorf("there is no verb %q", key)
		case s.Why == "":
			t.Errorf("%s: what is for anybody is not in the table", key)
		case deadly[key].Never:
			t.Errorf("%s: no CNI survives it, which is said already", key)
		}
	}
}
