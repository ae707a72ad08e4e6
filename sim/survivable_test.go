package sim

import (
	"slices"
	"testing"
)

// TestSurvivableVerbsExist: what is said about a verb is said about one that there is, and keys are of one verb each.
func TestSurvivableVerbsExist(t *testing.T) {
	var keys []string
	for _, v := range Verbs() {
		if slices.Contains(keys, v.Key()) {
			t.Errorf("two verbs have the key %q", v.Key())
		}
		keys = append(keys, v.Key())
		if s := v.Survivable(); s.Never && s.Why == "" {
			t.Errorf("%s: no CNI survives it, and nobody says why", v.Key())
		}
	}
	for key := range deadly {
		if !slices.Contains(keys, key) {
			t.Errorf("there is no verb %q", key)
		}
	}
}
