package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/impl/deploy"
	kindworld "github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/runner"
)

// holdVariable says that somebody listens on descriptor 3, and names the log.
const holdVariable = "ENILAB_HOLD_LOG"

// holdCommand is what `enilab up` executes: the process that holds a cluster.
func (l *cli) holdCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{Use: "hold", Short: "holds a kind cluster", Hidden: true, Args: nothing, RunE: func(*cobra.Command, []string) error {
		if os.Getenv(holdVariable) == "" {
			return usage("hold is what enilab up executes: use up")
		}
		debug.SetGCPercent(100) // it lives for days
		h := &holder{to: os.NewFile(3, "parent"), log: l.out}
		if err := l.hold(&f, h); err != nil {
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
	to *os.File // nil: nobody listens any more
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

// hold makes a cluster and is its cloud until somebody ends this process.
func (l *cli) hold(f *upFlags, h *holder) (err error) {
	parts, err := kindParts()
	if err != nil {
		return kindError(err)
	}
	hold, err := kindworld.NewHold(f.name, os.Getenv(holdVariable))
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	defer func() {
		if e := hold.End(); err == nil && e != nil {
			err = &exit{runner.ExitLacking, e.Error()}
		}
	}()
	c, err := kindworld.Up(l.context(), kindworld.Config{Name: f.name, NodeImage: f.image, File: f.config, Workers: f.nodes, Proxy: f.proxy, Type: f.kind,
		Kubeconfig: hold.Kubeconfig, Log: h.say})
	if err != nil {
		return kindError(err)
	}
	if err := l.install(c, parts, h); err != nil {
		if e := c.Close(); e != nil {
			err = fmt.Errorf("%w; and it cannot be removed: %w", err, e)
		}
		return kindError(err)
	}
	h.ready(c.Kubeconfig())
	<-l.context().Done()
	h.say("removing the cluster")
	if err := c.Close(); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return nil
}

// install puts the CNI onto a cluster.
func (l *cli) install(c *kindworld.Cluster, parts kindworld.Parts, h *holder) error {
	h.say("building the CNI's image")
	archive, image, err := parts.Image(l.context(), false)
	if err != nil {
		return err
	}
	h.say("loading it")
	if err := c.LoadImage(l.context(), archive); err != nil {
		return err
	}
	h.say("installing the CNI")
	return c.Install(l.context(), deploy.Options{Image: image})
}
