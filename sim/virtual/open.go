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
	cfg := Config{Nodes: c.Nodes, Cluster: c.Name, Type: c.Type, VPC: c.VPC, Subnet: c.Subnet, Runtime: c.Runtime, Warm: c.Warm, Budget: c.Budget,
		Version: c.Version, MaxPods: c.MaxPods, Settings: c.Settings, Seed: seed, Mutant: m, Quiet: c.Nodes > storyNodes, Book: b}
	for _, s := range c.Start {
		cfg.Start = append(cfg.Start, Workload{Name: s.Name, Count: s.Count, Nodes: s.Nodes})
	}
	return New(cfg)
}
