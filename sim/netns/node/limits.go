package node

import "time"

// slowed is a bound on a machine that is so many times slower than the one that the bound is made for.
func slowed(d time.Duration, slowness float64) time.Duration {
	return time.Duration(float64(d) * max(1, slowness))
}

// searchPath is all of the environment that the processes of a node get unasked.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// directTimeout is how long GC and STATUS may run: a plugin that hangs must not hang the laboratory.
	directTimeout = 60 * time.Second
	// execTimeout is how long a command may run that has no deadline of its own.
	execTimeout = 10 * time.Minute
	// maxBytes bounds a file that is read and a command's output, in bytes.
	maxBytes = 16 << 20
)
