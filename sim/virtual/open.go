package virtual

import (
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
)

// storyNodes is up to how many nodes a world keeps a story: a fleet's is told by its figures.
const storyNodes = 8

// Open makes the world that a scenario asks for.
func Open(c *sim.Cluster, seed uint64, m *mutants.Mutant) (*World, error) {
	cfg := Config{Nodes: c.Nodes, Type: c.Type, VPC: c.VPC, Subnet: c.Subnet, Runtime: c.Runtime, Warm: c.Warm, Budget: c.Budget,
		Version: c.Version, MaxPods: c.MaxPods, Settings: c.Settings, Seed: seed, Mutant: m, Quiet: c.Nodes > storyNodes}
	for _, s := range c.Start {
		cfg.Start = append(cfg.Start, Workload{Name: s.Name, Count: s.Count, Nodes: s.Nodes})
	}
	return New(cfg)
}
