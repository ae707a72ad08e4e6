package sim

import "time"

// The facts there are.
const (
	FactConfiguration = "the runtime's CNI configuration"
	FactVeth          = "how the names of pods' host veths begin"
	FactMTU           = "the MTU of pods' host veths"
	FactSource        = "the source of pods' packets beyond the VPC"
)

// NoConfiguration is FactConfiguration where the folder has none: no pod can start there.
const NoConfiguration = "none"

// Figures are what a run has cost, on a machine that can tell: seen from outside, so that any CNI's can be compared.
type Figures struct {
	// Adds and Dels are how long the plugin's successful runs took, of each verb the median: of DELs those that ended a pod's network, for a
	// runtime repeats them.
	Adds int           `json:"adds"` // how many there were
	Dels int           `json:"dels"`
	Add  time.Duration `json:"add"` // of one
	Del  time.Duration `json:"del"`
	// Failed are the ADDs that ran and ended in an error.
	Failed int `json:"failed"`
	// Start is the longest time from a daemon's start until it served, and Ready that from nothing until every pod of the start lines ran.
	Start time.Duration `json:"start"`
	Ready time.Duration `json:"ready"`
	// Memory is the largest resident set that a daemon of the end has had, in bytes.
	Memory int64 `json:"memory"`
	// ENIs are the interfaces that EC2 has attached to the nodes in the end.
	ENIs int `json:"enis"`
	// Calls are the requests to EC2 by action, those before t=0 too; Errors those that it refused, by error code.
	Calls  map[string]int64 `json:"calls,omitempty"`
	Errors map[string]int64 `json:"errors,omitempty"`
	// Facts are what nodes look like in the end, as text by what it is about: what others than the CNI rely on. What could not be looked at is left out.
	Facts map[string]string `json:"facts,omitempty"`
	// Pods are the attachments that ADDs made, in that order; Flows the connections to pods that were opened, and Pairs how often one pod asked
	// another. They are what a verdict rests on: of a run that made no pod nothing is known.
	Pods  []PodLife `json:"pods,omitempty"`
	Flows int       `json:"flows"`
	Pairs int       `json:"pairs"`
}

// PodLife is from a pod's ADD to its DEL, as far as they ended in success. Instants are the scenario's: before t=0 they are negative.
type PodLife struct {
	Made    time.Duration `json:"made"`
	Ended   time.Duration `json:"ended"`
	Deleted bool          `json:"deleted"` // Ended counts
}
