package scn

import "time"

// A File is one scenario: the script's lines and the sections after it.
//
// Parse fills every field. A program that writes a scenario needs Name and Lines only (a Line
// needs its Stmt only) and parses its own print to get positions and numbers.
type File struct {
	Name  string // as given to Parse, usually a path
	Lines []Line // every line of the script, also blank ones and comments

	// Story is the golden story with "\n" line ends, however the file ends its lines.
	Story    string
	HasStory bool
	Extra    []Section // the other sections, in order

	// Comment and Source are what Parse found in the comment block at the top: its text without
	// the "# Source:" lines, and the text of those. They are views: the block itself is in Lines.
	Comment string
	Source  string

	story   Section // the story's section as it stood in the file
	storyAt int     // how many of Extra stand before the story
}

// A Section is one file of the archive: a "-- name --" line and all bytes up to the next one.
type Section struct {
	Pos  Pos
	Name string
	Data string

	header string // the marker line with its line end, so that it prints as it was
}

// A Pos is a place in a scenario. Line and Col count from 1; Col counts bytes, as Go's tools do.
// Line 0 means the file as a whole.
type Pos struct {
	File      string
	Line, Col int
}

// A Line is one line of the script. Blank and comment-only lines have no Stmt.
type Line struct {
	Pos     Pos    // of the first byte that is not blank
	Number  int    // in the source, from 1; it stays when other lines are deleted
	Raw     string // the source text without its line end; printed as long as it says what Stmt says
	Guard   *Guard // nil: the line is for all worlds
	Stmt    Stmt
	Comment string // after the "#", without the blanks around it

	end lineEnd
}

// A Stmt is one of *Cluster, *Config, *Start, *Vary, *Always, *At, *Finally, *Never, *Against, *Reaches
// and *Compare.
type Stmt interface{ stmt() }

// A KV is one KEY=VALUE.
type KV struct {
	Pos        Pos
	Key, Value string
	ValuePos   Pos // of the value's first byte, inside the quotes if it has any
}

// Cluster says what the nodes and their network are. A world reads exactly one.
type Cluster struct{ Args []KV }

// Config holds settings of the CNI, by their environment variables' names.
type Config struct{ Args []KV }

// Start has Count pods called Name run on Target (a node or all nodes) when time begins.
type Start struct {
	Name   string
	Count  int
	Target Subject
}

// Vary runs the scenario once for each of Values, with $Key standing for it.
type Vary struct {
	Key    string
	Values []string
}

// Always names an invariant that is judged throughout.
type Always struct {
	Invariant    string
	InvariantPos Pos
}

// At does or checks something at the instant When, and again after each Every up to and including
// Until when HasEvery. Exactly one of Action and Check is set.
type At struct {
	Maybe              bool // the action may miss its target; else a run in which it does was not played
	When, Every, Until time.Duration
	HasEvery           bool
	Action             *Action
	Check              *Check
}

// Finally: after the last line the faults end, and within this time the cluster settles.
type Finally struct{ Within time.Duration }

// Never says that the cluster does not settle after the last line, and why it cannot.
type Never struct {
	Reason string
	Pos    Pos
}

// Against names a mutant that this scenario must catch, and the invariant that breaks first.
type Against struct {
	Mutant, Invariant       string
	By                      time.Duration
	HasBy                   bool
	MutantPos, InvariantPos Pos
}

// Reaches names a coverage point that the run must pass.
type Reaches struct {
	Point string
	Pos   Pos
}

// Compare names the counts that two runs of the scenario must have in common.
type Compare struct{ Counts string }

// A SubjectKind says what a line speaks about.
type SubjectKind int

const (
	Node     SubjectKind = iota + 1 // node-N
	AllNodes                        // node-*
	Pod                             // pod NAME
	EC2                             // the EC2 API
	IMDS                            // the instance metadata service
	Kube                            // the Kubernetes API
)

// A Subject is whom an action or a check is about.
type Subject struct {
	Pos  Pos
	Kind SubjectKind
	Node int    // from 1, for Node
	Pod  string // for Pod
}

// An Action is something done to a subject. Which verbs exist is not this package's business.
type Action struct {
	Subject Subject
	Verb    string
	VerbPos Pos
	Args    []Arg
}

// An Arg is VALUE (Key is empty) or KEY=VALUE.
type Arg struct {
	Pos        Pos
	Key, Value string
	ValuePos   Pos // as in KV
}

// A Check is an expectation. Without Op the metric itself must be true.
type Check struct {
	Within    time.Duration
	HasWithin bool
	Subject   Subject
	Metric    string
	MetricPos Pos
	Op        string // == != < <= > >= or empty
	Value     string
	ValuePos  Pos // as in KV
}

func (*Cluster) stmt() {}
func (*Config) stmt()  {}
func (*Start) stmt()   {}
func (*Vary) stmt()    {}
func (*Always) stmt()  {}
func (*At) stmt()      {}
func (*Finally) stmt() {}
func (*Never) stmt()   {}
func (*Against) stmt() {}
func (*Reaches) stmt() {}
func (*Compare) stmt() {}

// lineEnd is how a line ends. The zero value is right for lines that a program writes.
type lineEnd int

const (
	endLF   lineEnd = iota
	endCRLF         // kept, so that a file from Windows prints its own bytes
	endNone         // the last line of a file without a final newline
)
