package scn

import "time"

// Limits of a scenario. Each is far above what a person writes and low enough that a wrong file
// is refused at once instead of filling memory or time.
const (
	MaxFile     = 1 << 20   // bytes: a golden story of 10,000 lines fits; a log or a core dump does not
	maxLine     = 4096      // bytes of one script line: more is not readable
	maxLines    = 10_000    // script lines: one a minute for most of a week
	maxVariants = 256       // runs of one scenario: at a second each it still ends while one waits
	MaxCount    = 1_000_000 // pods of one line, and the highest node: Kubernetes itself ends at 150,000 pods
	maxRepeats  = 100_000   // of one "every" line: once a second for a day is 86,400

	// maxDuration keeps sums of a few durations far from overflow.
	maxDuration = 365 * 24 * time.Hour
)
