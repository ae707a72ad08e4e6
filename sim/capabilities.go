package sim

import (
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
)

// Capabilities are what a run may ask of a world beyond what every world can. What a world cannot be asked is nil.
type Capabilities struct {
	// Broken says what has broken of the world itself, and not of what is played in it; Disagreements where two of its
	// sources differ.
	Broken        func() error
	Disagreements func() []string
	// Book is what happened to every ENI and attachment: it has to be the same in virtual time. Incomparable says why
	// virtual time cannot tell the same: something happened that no line asked for. "" is nothing.
	Book         func() *timeline.Book
	Incomparable func() string
	// Crashes are the daemons that have ended by themselves. Only processes do.
	Crashes func() []Failure
	// TooSlow says why what failed counts for nothing, where time is real and the machine did not keep up: an error
	// with a method TooSlow. It returns nil if it counts.
	TooSlow func() error
	// Figures are what the run has cost.
	Figures func() *Figures
	// Survey enters what there is now.
	Survey func(*timeline.Tracks)
	// Unknown names the system that is played, and those settings of a line that its description does not have: what
	// they were to bring about cannot be expected of it.
	Unknown func(*scn.Line) (system string, settings []string)
	// Excuse says why a coverage point was not reached that a scenario wants, of which these actions were not carried
	// out. Its text is the reason for a skip; nil is no excuse.
	Excuse func(mark string, left []*scn.Action) error
}
