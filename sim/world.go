package sim

import (
	"time"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// World is where a scenario happens. It starts at t=0 of the scenario, with the pods of its start lines ready.
type World interface {
	// Can says whether the world can do or observe what a line asks. Its text is the reason for a skip.
	Can(line *scn.Line) error
	// Do carries out an action, now, and gives its number. A verb whose target is gone does nothing, and has missed.
	Do(a *verb.Act) (id int)
	// Strike is what has become of an action by now. Who met it has told, never who armed it.
	Strike(id int) verb.Strike
	// Measure reads a metric, now. ok is false when there is no consistent snapshot, or nothing to measure.
	Measure(s scn.Subject, metric string) (value int64, ok bool)
	// Until runs to instant t. each, if any, is called whenever something may have changed, and ends the run by returning true.
	Until(t time.Duration, each func() bool)
	// Steady runs on to the first moment at which a consistent snapshot can be made, so that what is expected can be measured.
	Steady()
	// EndFaults ends everything that actions broke and that ends by itself no more.
	EndFaults()
	// Settle judges what has to hold once settled, where nothing is under way any more; it names what is. What is still
	// acted on is neither leaked nor missing.
	Settle() (underWay []string)
	// Now is the instant of the scenario.
	Now() time.Duration
	// Epoch is what has to be subtracted from the instants of violations.
	Epoch() time.Duration
	// Audit is the world's auditor.
	Audit() *judge.Auditor
	// Reached says whether the run came through a coverage point.
	Reached(mark string) bool
	// Story is what happened, for people and golden files.
	Story() string
	// Capabilities are what it can be asked beyond this.
	Capabilities() Capabilities
	// Close ends the world and removes everything that it made.
	Close() error
}
