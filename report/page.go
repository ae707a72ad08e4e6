package report

import "time"

// Page is what one report is about: runs, or pairs of them, or checks that are no runs.
type Page struct {
	Title   string // what was asked for, such as "run" or "gate from A to B"
	By      string // the enilab that says so, with its version
	Command string // shows it all again
	// Runs are what was played: of a mutant too. A run that stands in Pairs need not stand here.
	Runs []Run
	// Banner is what a gate came to; nil: the page says what its runs, pairs and checks come to.
	Banner *Banner `json:",omitempty"`
	// Columns and Matrix are a gate's plays, scenario by scenario.
	Columns []string `json:",omitempty"`
	Matrix  []Row    `json:",omitempty"`
	// Findings are a gate's, each once, the gravest first.
	Findings []Finding `json:",omitempty"`
	// Pairs are a gate's.
	Pairs []Pair
	// Figures are a gate's measurements against their bands.
	Figures []Figure
	// Checks are what was asked of an endpoint, row by row.
	Checks []Check
	// Notes are sentences about the whole: what was not played, which acceptance is stale.
	Notes []string
}

// Change is what a gate finds of a pair.
type Change string

// The changes there are.
const (
	Same       Change = "same"       // both held, or both broke the same
	Regression Change = "regression" // what held before does not any more
	Mended     Change = "mended"     // what broke before holds now
	Accepted   Change = "accepted"   // a regression that was accepted, with a reason
	Unknown    Change = "unknown"    // one of the two could not be played
)

// Class is how something looks.
type Class string

// The classes there are. Only what is known to be well is Good.
const (
	Good Class = "good"
	Bad  Class = "bad"
	Warn Class = "warn" // unknown, or nothing that needs an action
	None Class = "none" // there is nothing to say of it
)

// Banner is the judgement of the whole.
type Banner struct {
	Word  string // red, not red, not known, interrupted
	Class Class
	Line  string // what a person can act upon
	Also  string // how much was found
}

// Row is a scenario of a matrix, with a cell for each column.
type Row struct {
	Name  string
	Cells []Cell
}

// Cell is what came of a play with all its seeds.
type Cell struct {
	Class Class
	Text  string
	Seeds string // with which it came so
}

// Finding is a difference that a gate found.
type Finding struct {
	Kind    string // regression, accepted, seldom, …
	Class   Class
	Line    string // who does what, and why
	Facts   []string
	Text    string // what was told, in full
	Command string // plays it again
	Folded  bool   // it is shown on a click
	Pair    int    // which of the pairs shows it, from 1; 0: none
}

// Pair is a scenario with the old version beside the same with the new one, or with the change in its middle.
type Pair struct {
	Scenario string
	Play     string // what was done: "upgraded in the middle, image only"
	Change   Change
	Why      string // one sentence: what makes it a regression, why it was accepted, why it is not known
	Old, New *Run   // nil: was not played
}

// Figure is a measurement of a gate.
type Figure struct {
	Name     string // "EC2 calls, DescribeNetworkInterfaces"
	Unit     string // "ms", "MB", "" for a count
	Old, New float64
	Band     float64 // how much more is tolerated: 0.25 is a quarter
	Beyond   bool
}

// Check is one row of a table that an endpoint was asked.
type Check struct {
	Suite, Name string
	Verdict     string // held, violated or skipped
	Text        string // what was expected and found, or why it was skipped
	Wall        time.Duration
}

// Run is what is known of one run of a scenario. Instants are the scenario's; before t=0 they are negative.
type Run struct {
	Scenario string // name of the file, without folder and ending
	File     string
	Headline string
	Source   string
	Variant  string // "" when the file has none
	Seed     uint64
	World    string // sim, netns or kind
	System   string // "NAME VERSION" of what was played in enilab's place
	Play     string // what a gate did in the middle
	Mutant   string // who played the daemon; "" for the one of the system
	// Verdict is a word of runner.Meanings. Of a mutant's run it is violated when something broke, whatever the file says.
	Verdict string
	// Meant is a mutant that broke what the file says that it breaks: the scenario proves something.
	Meant bool
	// Claim is what the file says that the mutant breaks.
	Claim string `json:",omitempty"`
	First *Break `json:",omitempty"` // what broke first; nil when nothing did
	// Also are the other sentences: what missed, what did not settle, why the machine did not keep up.
	Also    []string
	Remedy  string // what to do about it, "" when nothing has to be done
	Command string // shows it again
	Ended   time.Duration
	Wall    time.Duration // this computer's; 0: not measured
	Nodes   int
	// Others says what is left out: the nodes that the violation does not touch.
	Others string `json:",omitempty"`

	Timeline []Event
	Lanes    []Lane
	Curves   []Curve
	Faults   []Fault
	Script   []Line
	Looks    []Look
	Judged   int // expectations
	Skipped  []Skip
}

// Break is what broke first.
type Break struct {
	At        time.Duration
	Node      int    // 0: the cluster
	Invariant string // phrase; "" for an expectation, or for a run that never began
	Line      int    // of the script: of the expectation, or the last action before; 0 is none
	Text      string
}

// Event is a line of the timeline.
type Event struct {
	At, Last time.Duration // Last is when it happened last, of several times
	Node     int           // 0: the scenario; -1: the cluster
	Text     string
}

// LaneKind is what a lane follows.
type LaneKind string

// The kinds of lanes.
const (
	Daemon LaneKind = "daemon"
	ENI    LaneKind = "eni"
	Pod    LaneKind = "pod"
)

// Lane is one subject over time.
type Lane struct {
	Node  int
	Kind  LaneKind
	Name  string
	Spans []Span
}

// Span is a while in which a lane's subject was in one state.
type Span struct {
	From, To time.Duration
	State    string // such as serves, in-use, ready, unreachable
	Text     string // such as its addresses
}

// Curve is a number over time: each point holds until the next.
type Curve struct {
	Node   int // 0: the cluster
	Name   string
	Points []Point
}

// Point of a curve.
type Point struct {
	At    time.Duration
	Value float64
}

// Fault is a line of the scenario that did something, and what became of it.
type Fault struct {
	From, To time.Duration // when it was done, and when a later line undid it, or the run ended; the same: it was over at once
	Node     int           // 0: not a node's
	Kind     FaultKind
	Line     int
	Text     string // the line
	Fate     string // struck, missed or armed
	Did      string // what it did, or why it missed
}

// FaultKind is whom a fault strikes.
type FaultKind string

// The kinds of faults.
const (
	AtDaemon FaultKind = "daemon" // killed, restarted, upgraded, kept down
	AtNode   FaultKind = "node"   // its kernel, runtime or machine
	AtPod    FaultKind = "pod"
	AtEC2    FaultKind = "ec2"
	AtIMDS   FaultKind = "imds"
	AtKube   FaultKind = "kube" // what people ask of Kubernetes; mostly no fault
)

// Mark says what a report has to show of a line.
type Mark string

// The marks there are.
const (
	Due     Mark = "due"     // it was carried out until what broke first did
	Later   Mark = "later"   // it comes after that
	Broke   Mark = "broke"   // it is the one
	Expects Mark = "expects" // it asks for the invariant that broke
	Left    Mark = "skipped" // the world did not carry it out
)

// Line of a script.
type Line struct {
	Number int
	Text   string
	Mark   Mark `json:",omitempty"`
}

// Look is how often an invariant was looked at. One that was not judged says why.
type Look struct {
	Invariant string
	Times     int64
	Broke     int64
	Expected  int    // the line that expects it always; 0: none does
	Why       string // it was not judged; "" is that it was
}

// Skip is a line that was not carried out.
type Skip struct {
	Line int
	Why  string
}
