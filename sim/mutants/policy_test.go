package mutants

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
)

// decisions are what each mutant takes otherwise than ipam.Sound.
var decisions = map[string]string{
	"unanswered-is-empty":         "Complete",
	"metadata-absence-is-proof":   "Absent",
	"all-attached-is-ours":        "Ours",
	"views-show-now":              "Stale",
	"metadata-is-believed":        "Vouch",
	"link-does-not-matter":        "Serves",
	"waits-for-the-runtime":       "Begins",
	"recover-from-runtime-only":   "Recall",
	"drain-without-proof":         "Drainable",
	"no-kernel-veto":              "Veto",
	"quarantine-for-ever":         "Cleared",
	"flows-end-by-themselves":     "Flowless",
	"own-version-only":            "Speaks",
	"free-what-has-no-pod":        "Gone",
	"no-cool-down":                "CoolDown",
	"forgotten-is-free":           "Forgotten",
	"release-by-pod-name":         "Match",
	"late-del-hits-the-first":     "Match",
	"unknown-del-fails":           "Unknown",
	"newest-evicts":               "Displace",
	"no-repair":                   "Repair",
	"forward-as-found":            "Repair",
	"no-intents":                  "Intend",
	"lost-is-failed":              "Lost",
	"no-sweep":                    "Sweep",
	"sweeps-the-living":           "Sweep",
	"sweeps-a-neighbours":         "Sweep",
	"gc-trusts-its-list":          "Collect",
	"all-you-can-carry":           "Demand",
	"never-gives-back":            "Demand",
	"each-for-itself":             "TopUp",
	"room-under-way-is-none":      "Fits",
	"no-backoff":                  "Backoff",
	"any-subnet":                  "Suits",
	"full-subnet-again":           "Switches",
	"waits-for-subnets":           "Blind",
	"groups-of-birth":             "Regroup",
	"eniconfig-of-any-zone":       "Near",
	"eniconfig-of-birth":          "Current",
	"tags-of-birth":               "Current",
	"eniconfig-without-groups":    "Grouped",
	"primary-carries-pods":        "Reserved",
	"prefix-with-pods-is-idle":    "Idle",
	"prefix-forgets-cool-downs":   "Idle",
	"prefix-takes-sixteen-places": "Slots",
	"waits-for-a-prefix":          "Bare",

	"nothing-written":               "Forgotten",
	"checkpoint-of-another-version": "Forgotten",
}

// TestAMutantTakesOneDecisionOtherwise: a scenario that it breaks would otherwise not say which rule it proves.
func TestAMutantTakesOneDecisionOtherwise(t *testing.T) {
	left := maps.Clone(decisions)
	for _, m := range All() {
		want, named := left[m.Name]
		delete(left, m.Name)
		if m.Policy == nil && !named {
			continue
		}
		if m.Policy == nil || !named {
			t.Errorf("%s: changes a policy: %t, is named here: %t", m.Name, m.Policy != nil, named)
			continue
		}
		p := ipam.Sound()
		m.Policy(p)
		if got := changed(p); !slices.Equal(got, []string{want}) {
			t.Errorf("%s takes other decisions about %v, expected %s", m.Name, got, want)
		}
		if _, err := ipam.New(p); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for name := range left {
		t.Errorf("there is no mutant %s", name)
	}
}

// changed are the fields in which a policy is not Sound.
func changed(p *ipam.Policy) (fields []string) {
	is, sound := reflect.ValueOf(p).Elem(), reflect.ValueOf(ipam.Sound()).Elem()
	for i := range is.NumField() {
		if is.Field(i).Pointer() != sound.Field(i).Pointer() {
			fields = append(fields, is.Type().Field(i).Name)
		}
	}
	return fields
}
