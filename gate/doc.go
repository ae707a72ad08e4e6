// Package gate says what a change from one version of a CNI to another breaks: it plays scenarios with the version before and with the one after,
// upgraded in the middle and rolled back in the middle, each of these with the image alone and with the manifest, and compares what held.
//
//	scripts, err := pair.Scripts(file)            what has to be played, and in which text
//	v := gate.Compare(results)                    what held before and does not any more, and what is mended
//	v.Figures = gate.Measure(results)             what became dearer than its band allows
//	v.Accept(allowed)                             what somebody has accepted, with a reason
//
// It plays nothing itself and has no files: whoever calls it does.
package gate
