package e2e

import (
	"fmt"

	"github.com/enilab/enilab/sim/judge"
)

// violation is an invariant that broke. Anything else that goes wrong in an incident is an ordinary error, and proves nothing.
type violation struct {
	id   judge.ID
	text string // who, what was expected, what was found
}

// broken is a violation.
func broken(id judge.ID, format string, args ...any) error {
	return &violation{id, fmt.Sprintf(format, args...)}
}

func (v *violation) Error() string { return fmt.Sprintf("%q broke: %s", v.phrase(), v.text) }

// phrase is the invariant's, as scenarios quote it.
func (v *violation) phrase() string {
	for _, i := range judge.Catalogue() {
		if i.ID == v.id {
			return i.Phrase
		}
	}
	return v.id.String()
}
