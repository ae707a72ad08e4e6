// Package pipeline holds the action of this repository (action.yml) and the examples of docs/ci.md to what they say: actionlint accepts them, and their
// steps, run as a shell runs them, play a scenario and leave a report. It has tests and nothing else.
package pipeline
