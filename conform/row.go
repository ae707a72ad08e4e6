package conform

import "strings"

// Row is one behaviour.
type Row struct {
	Name   string // stable: what reports are compared by. AREA.WHAT
	Call   string // the action, or the verb and path
	When   string // what is so before the call, or asked by it
	Want   string // the answer, or the error's code; several are separated by "|"
	Source string // the title of an AWS document, or an issue
	Marks  Marks
	run    func(*try)
}

// Marks say what a row needs that not every endpoint or purse has.
type Marks uint8

const (
	// Costly rows start instances: they cost money on AWS.
	Costly Marks = 1 << iota
	// Slow rows empty a token bucket, and wait for it to fill first: minutes, in which the account is throttled.
	Slow
	// Keys rows need an endpoint that checks signatures, and credentials that it knows.
	Keys
	// Attaches rows attach interfaces to the instance.
	Attaches
)

var markNames = [...]string{"costly", "slow", "keys", "attaches"}

// String is the marks' names, as "costly, keys".
func (m Marks) String() string { return strings.Join(m.Names(), ", ") }

// Names are the marks' names.
func (m Marks) Names() []string {
	var out []string
	for k, name := range markNames {
		if m&(1<<k) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// EC2Rows is the table of EC2, in the order in which it is asked.
func EC2Rows() []Row {
	var all []Row
	for _, part := range [...][]Row{
		protocolRows(), createRows(), deleteRows(), attachRows(), detachRows(), modifyRows(), assignRows(), unassignRows(),
		describeRows(), lookupRows(), tagRows(), throttleRows(), subnetRows(),
	} {
		all = append(all, part...)
	}
	return all
}

// IMDSRows is the table of the instance metadata service.
func IMDSRows() []Row {
	var all []Row
	for _, part := range [...][]Row{tokenRows(), refusalRows(), treeRows(), macRows(), dynamicRows()} {
		all = append(all, part...)
	}
	return all
}
