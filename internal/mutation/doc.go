// Package mutation changes the source and asks the tests whether they notice. A test that no change of what it tests turns red proves nothing.
//
//   - A [Change] says in words of the source what becomes of what: the old text, which is there once, and the new one. It survives what others
//     do to the rest of the file, and says so when what it changes is gone; a diff knows lines, and applies beside them.
//   - A [Set] is many mutants in one binary: building one for each takes seconds, and there are hundreds. Each is a copy of the function, or of
//     a variable's value, that it changes, and [Env] says at run time which copy is used.
//   - [Candidates] are the changes that a machine thinks of: another comparison, a condition left out, a statement less.
//
// Three use it: the tests of package conform (each row has a change of the fakes that makes it fail), the patches of testdata/patches (changes
// that were once made, or feared, and which no quick test noticed), and make mutation (a sample of all changes). Changes that are kept are files
// of one form, a [Patch] each or several.
package mutation
