package virtual

import (
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
)

// storyNodes is up to how many nodes a world keeps a story: a fleet's is told by its figures.
const storyNodes = 8

// Open makes the world that a scenario asks for.
func Open(c *sim.Cluster, seed uint64, m *mutants.Mutant) (*World, error) {
	return OpenWith(c, seed, m, nil)
}

// OpenWith is Open with a book that is told what is done from t=0 on.
func OpenWith(c *sim.Cluster, seed uint64, m *mutants.Mutant, b *timeline.Book) (*World, error) {
	w := &World{mutant: m, hushed: c.Nodes > storyNodes, book: b, hash: 14695981039346656037}
	if err := w.open(c, seed); err != nil {
		return nil, err
	}
	return w, nil
}
