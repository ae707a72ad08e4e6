package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// endLimit is how long a run may take to end once it was interrupted. A supervisor sends SIGKILL after five seconds or more.
const endLimit = 4 * time.Second

// deadline ends this process when a run has been interrupted and does not end: something in it cannot be. What was known by then is said.
// A laboratory's nodes die with this process, and with them all that they are made of; a cluster, if one is named, is left to another process.
// stop takes it back.
func (l *cli) deadline(p *progress, cluster string) (stop func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(l.context(), func() {
		late := time.NewTimer(endLimit)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
			fmt.Fprintf(l.err, "\nenilab: interrupted, and %v later something has not ended: %s\n", endLimit, p.lastSeen())
			netnsworld.Abandon()
			if cluster != "" {
				l.leave(cluster)
			}
			os.Exit(runner.ExitInterrupted)
		}
	})
	return func() { forget(); close(done) }
}
