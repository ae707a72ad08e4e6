package gate

import "github.com/enilab/enilab/sim"

// Result is what came of one run: a scenario's variant, in a play, with a seed.
type Result struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"`
	Play     Play   `json:"play"`
	Seed     uint64 `json:"seed"`
	// Unknown is why it was not played, or not to its end. The rest says nothing then.
	Unknown string `json:"unknown,omitempty"`
	// Status is the word of its verdict.
	Status string `json:"status,omitempty"`
	// Broken is all that broke, in the order in which it did.
	Broken []Broken `json:"broken,omitempty"`
	// Times is how often an invariant broke, by its phrase.
	Times map[string]int `json:"times,omitempty"`
	// Judged is how many expectations were.
	Judged int `json:"judged"`
	// Skipped are the lines that the system lacks something for.
	Skipped []int `json:"skipped,omitempty"`
	// Missed are the actions that found nothing to strike.
	Missed  []Miss       `json:"missed,omitempty"`
	Change  float64      `json:"change"` // the instant, in seconds
	Ended   float64      `json:"ended"`
	Figures *sim.Figures `json:"figures,omitempty"`
}

// Broken is something that should have held.
type Broken struct {
	// Check is an invariant's phrase, "line 12" for an expectation, or one of the constants below.
	Check string  `json:"check"`
	At    float64 `json:"at"` // seconds
	Node  int     `json:"node,omitempty"`
	Text  string  `json:"text"`
}

// Miss is an action that found nothing to strike.
type Miss struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// What can break beside invariants and expectations.
const (
	EndsByItself = "a daemon ends by itself"
	Settles      = "it settles"
)

func (r *Result) broke(check string) *Broken {
	for i := range r.Broken {
		if r.Broken[i].Check == check {
			return &r.Broken[i]
		}
	}
	return nil
}
