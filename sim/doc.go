// Package sim runs scenarios: it checks what a scenario says ([Check], [verb.Bind]), carries its lines out in a
// [World] at their instants ([Run]), and says how it ended ([Verdict]). It knows no world: package virtual is one, in
// virtual time, others run real processes.
//
// [verb.All] and [Metrics] are the catalogue of what a scenario can do and expect.
package sim
