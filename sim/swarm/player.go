package swarm

import "github.com/enilab/enilab/sim/mutants"

// Player plays scenarios in a world.
type Player interface {
	// World is what guards of lines call the world.
	World() string
	// Repeats says whether the same scenario and seed are the same run.
	Repeats() bool
	// AtOnce is how many runs it plays at the same time, each in a call of its own.
	AtOnce() int
	// Play plays a scenario without variants, mutants left out. The error says why it was refused before it ran, or why nothing can be played
	// there. stop, if any, is asked now and then, and ends the run by returning true.
	Play(name, text string, seed uint64, stop func() bool) (*Outcome, error)
}

// Sim plays in virtual time.
type Sim struct {
	Cores   int
	Against *mutants.Mutant // in the place of the daemon, if any
}

func (s *Sim) World() string { return world }
func (s *Sim) Repeats() bool { return true }
func (s *Sim) AtOnce() int   { return max(1, s.Cores) }

func (s *Sim) Play(name, text string, seed uint64, stop func() bool) (*Outcome, error) {
	return PlayAgainst(name, text, seed, s.Against, stop)
}

var _ Player = (*Sim)(nil)
