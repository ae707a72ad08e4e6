// Package runner runs a scenario file as a whole: every variant of it, then every mutant that the file names, and says whether
// the file proves what it claims. The laboratory's command and the tests use the same functions, so that what is green in
// one is green in the other.
//
//	c, err := runner.Load(runner.Sim(), name, data)      // every mistake in the file, before anything runs
//	r := c.Run(runner.Options{Seed: runner.DefaultSeed})
//	if r.Status != runner.Held { fmt.Print(r.Report()) }
//
// A file holds when each of its variants holds, tells the golden story (with the default seed) and each of its mutants
// breaks, first and in time, the invariant that its `against` line names: a scenario that no mutant can break proves nothing.
//
// The simulator is deterministic and must stay so: a twentieth of all runs, chosen by their names, is run twice and compared.
package runner
