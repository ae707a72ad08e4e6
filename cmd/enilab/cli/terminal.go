package cli

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// terminal says whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The colours of the words that matter.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colour paints text, on terminals of people who want that (https://no-color.org).
func colour(w io.Writer, code, text string) string {
	if os.Getenv("NO_COLOR") != "" || !terminal(w) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// shade is a status's colour.
func shade(s runner.Status) string {
	switch s {
	case runner.Held:
		return green
	case runner.Skipped, runner.Interrupted:
		return yellow
	}
	return red
}

// progress is one line on a terminal that says what happens now. Elsewhere it is silent, but for what has ended.
type progress struct {
	w     io.Writer
	on    bool
	shown bool
	began time.Time
	last  time.Time
	// now is where the run is; another goroutine reads it when the run does not end (see deadline).
	now atomic.Pointer[runner.Progress]
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, on: terminal(w), began: time.Now()}
}

// Short work needs no progress line, more than ten a second cannot be read, and a line that wraps cannot be taken
// away.
const (
	patience     = 500 * time.Millisecond
	redraw       = 100 * time.Millisecond
	progressWide = 79
)

// say draws the line again, if it is time to.
func (p *progress) say(line string) {
	now := time.Now()
	if !p.on || now.Sub(p.began) < patience || now.Sub(p.last) < redraw {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprint(p.w, "\r\x1b[K"+wrap(line, progressWide)[0])
}

// tell is say for a scenario that runs.
func (p *progress) tell(x runner.Progress) {
	p.now.Store(&x)
	if !p.on {
		return
	}
	what, where := whereabouts(&x)
	p.say(fmt.Sprintf("run %d of %d, %s, %s events: %s", x.Run, x.Runs, where, runner.Number(x.Events), what))
}

// whereabouts are what runs, and how far it is.
func whereabouts(x *runner.Progress) (what, where string) {
	what = x.Scenario
	if x.Variant != "" {
		what += " (" + x.Variant + ")"
	}
	if x.Doing != "" {
		what += ", " + x.Doing
	}
	if x.End == 0 {
		return what, "its pods start"
	}
	return what, fmt.Sprintf("%s of %s", runner.Short(x.Now), runner.Short(x.End))
}

// passed says that a part of the work is over: on a terminal in the line, elsewhere in one of its own, at most one a second and always the last.
func (p *progress) passed(line string, last bool) {
	if p.on {
		p.say(line)
		return
	}
	if now := time.Now(); last || now.Sub(p.last) >= time.Second {
		p.last = now
		fmt.Fprintln(p.w, line)
	}
}

// silence is how long a run in real time says nothing where there is no terminal: a pipeline's operator takes more for a hang.
const silence = 30 * time.Second

// breaks tells where the run is, in lines of their own, after each silence. stop ends that; on a terminal it does nothing.
func (p *progress) breaks(silence time.Duration) (stop func()) {
	if p.on {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(silence)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				fmt.Fprintln(p.w, p.lastSeen())
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// clear takes the line away, for something that stays, and begins to be patient again.
func (p *progress) clear() {
	p.began = time.Now()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// lastSeen says where the run was, for people.
func (p *progress) lastSeen() string {
	x := p.now.Load()
	if x == nil {
		return "nothing had begun"
	}
	what, where := whereabouts(x)
	return fmt.Sprintf("%s, run %d of %d, %s", what, x.Run, x.Runs, where)
}
