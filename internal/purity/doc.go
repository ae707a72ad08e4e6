// Package purity holds the rules that make a run repeatable and a core that can be stepped anywhere, as analyzers for go vet: [Pure],
// [State] and [mapOrder] judge what a pure package does, [Layers] who may import whom. Below it, vet is the tool that make lint gives to
// go vet; the test of this package runs the same analyzers. Nothing else links them. Below it too, tracked refuses binaries in git.
//
// A pure package (see pure in rules.go) has no source of change but its arguments:
//
//   - it imports what is on a list of the standard library, and pure packages of this module. Not on the list: os, sync,
//     context, net (netip is), syscall, unsafe, runtime, log, and any package that was not considered yet;
//   - it calls nothing that reads the clock, sleeps, draws from a generator that is not its own, prints or reads files;
//   - it has no go statement, channel or select;
//   - it has no package-level variable that changes. Writing to one, to an element of one, taking its address, or calling
//     something that changes it is a finding. A slice or pointer that was first copied into a local variable is not followed;
//   - no order of a map shows.
//
// The order of a map does not show when the body of the range is made of these alone, which is a test of syntax:
//
//   - counts and sums into integers (x++, x += e, |=, &=, ^=), x = max(x, e), x = min(x, e), if e > x { x = e };
//   - delete from another map, or of the range's own key; other[key] = e with the range's own key; other[e] = constant;
//   - x = append(x, …) where the same function later sorts x: slices.Sort* or sort.*. A comparison that leaves ties is not found;
//   - x = constant, the same one wherever x is set;
//   - one search: if … { return constant } or { x = constant; break }, when the body changes nothing else;
//   - variables of the body itself, if, switch, for and continue around all these;
//   - and no call except conversions, builtins and reading functions of the standard library.
//
// What is counted, collected or set may not be read in the body. Anything else is written over a sorted slice, over
// slices.Sorted(maps.Keys(m)), or says on its line, or the line above, why it is right:
//
//	for _, b := range listed { // a set: the order does not show
//
// No package needs to know what was found in another, so there are no facts: pure packages import pure packages only, and a variable of
// another package that is written is seen where it is written.
//
// The imports between packages (see layers in rules.go) are judged everywhere. Test files are not judged.
package purity
