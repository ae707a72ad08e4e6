package cli

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
)

// holdCommand is what `enilab up` executes: the process that holds a cluster.
func (l *cli) holdCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{Use: "hold", Short: "holds a kind cluster", Hidden: true, Args: nothing, RunE: func(*cobra.Command, []string) error {
		log := os.Getenv(holdVariable)
		if log == "" {
			return usage("hold is what enilab up executes: use up")
		}
		if err := l.needKind(); err != nil {
			return err
		}
		debug.SetGCPercent(100) // it lives for days
		h := &holder{to: os.NewFile(3, "parent"), log: l.out}
		if err := l.kind.Hold(l.context(), &f.Cluster, log, h.say, h.ready); err != nil {
			err = l.kindError(err)
			h.fail(err)
			return err
		}
		return nil
	}}
	f.add(c)
	return c
}

// holder tells the parent, and the log.
type holder struct {
	log io.Writer

	mu sync.Mutex
	to *os.File // nil: the reader is gone
}

func (h *holder) tell(word, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text = strings.ReplaceAll(text, "\n", " ")
	fmt.Fprintf(h.log, "%s %s %s\n", time.Now().UTC().Format(time.RFC3339), word, text)
	if h.to != nil {
		_, _ = fmt.Fprintf(h.to, "%s %s\n", word, text) // the parent may have gone
	}
}

func (h *holder) say(text string) { h.tell(wordSay, text) }

// ready is the last word to the parent.
func (h *holder) ready(kubeconfig string) {
	h.tell(wordReady, kubeconfig)
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.to.Close()
	h.to = nil
}

func (h *holder) fail(err error) {
	code := runner.ExitBad
	if e, ok := err.(*exit); ok {
		code = e.code
	}
	h.tell(wordFail, fmt.Sprintf("%d %v", code, err))
}
