// Package gate says what a change from one version of a CNI to another breaks: it plays scenarios with the version
// before and with the one after, upgraded in the middle and rolled back in the middle, each of these with the image
// alone and with the manifest, and compares what held.
//
//	page, err := gate.Run(ctx, gate.Config{From: "my-cni@1.0.0", To: "my-cni@1.1.0=./bin", Program: "bin/enilab"})
//	page.Outcome()          red, not red, not known or interrupted, with the exit code
//	page.Verdict.Ranked()   what was found, the gravest first
//	page.Report()           the same as a page of HTML and as JUnit
//
// On the way from a pair of versions to a verdict are
//
//	config.go    what was asked for, judged and read before anything starts
//	play.go      Pair.Scripts: what has to be played, and in which text
//	mode.go      Change with prefixes, or with custom networking
//	stage.go     the plays, in virtual machines (vm.Laboratory), and the cache of what was played before
//	compare.go   Compare: what held before and does not any more, and what is mended
//	evidence.go  what the silence of a play rests on
//	bands.go     Measure: what became dearer than its band allows
//	allow.go     Accept: what somebody has accepted, with a reason
//	page.go      all of that as data and as text, headline.go in one sentence; report.go as a report
package gate
