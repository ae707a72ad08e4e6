package process

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/swarm"
)

// Player plays by running a program.
type Player struct {
	Program string   // enilab
	Args    []string // of `run` beside the seed, such as --on netns. The scenario is its standard input
	On      string   // the world's name, as guards of lines say it
	Same    bool     // the same scenario and seed are the same run
	Many    int      // how many at once
	Within  time.Duration
}

// Limits of a run.
const (
	grace    = 6 * time.Second        // to end once it was asked to: a run bounds its own end by four
	asking   = 100 * time.Millisecond // how often it is asked whether the run is still wanted
	mostText = 64 << 20               // of a document
	lastText = 4 << 10                // of what it said
)

// Lacking is why nothing can be played on this machine.
type Lacking struct{ Why string }

func (l *Lacking) Error() string { return l.Why }

func (p *Player) World() string { return p.On }
func (p *Player) Repeats() bool { return p.Same }
func (p *Player) AtOnce() int   { return max(1, p.Many) }

// args are the arguments of a run.
func (p *Player) args(seed uint64) []string {
	return append(append([]string{"run"}, p.Args...), "--json", "--stop-at-first", "--seed", strconv.FormatUint(seed, 10), "-")
}

// Again is the command that shows a run again. Where runs repeat it is the run's own, to the letter: a flag more or less is another run for a
// machine that reads its flags in virtual time.
func (p *Player) Again(file string, seed uint64) string {
	if p.Same {
		return "enilab " + strings.Join(p.args(seed), " ") + " < " + file
	}
	return strings.Join(append(append([]string{"enilab", "run"}, p.Args...), file, "--seed", strconv.FormatUint(seed, 10)), " ")
}

// Play plays a scenario.
func (p *Player) Play(name, text string, seed uint64, stop func() bool) (*swarm.Outcome, error) {
	f, err := scn.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	return p.run(p.args(seed), text, stop).outcome(f, p.Within)
}

// ran is how a process ended.
type ran struct {
	out  []byte // what it wrote
	said string // the end of what it said
	code int    // -1: by a signal
	cut  bool   // it was no longer wanted
	late bool   // it took too long
	err  error  // it could not be started
}

// run starts a process and waits until it has ended, or until it is no longer wanted.
func (p *Player) run(args []string, text string, stop func() bool) *ran {
	// The kernel ends a child with the thread that started it, not with the process: so this thread stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &ran{}
	ctx, end := context.WithTimeout(context.Background(), p.Within)
	defer end()
	c := exec.CommandContext(ctx, p.Program, args...)
	out, said := &bounded{most: mostText}, &tail{most: lastText}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), out, said
	alone(c)
	c.Cancel = func() error { return ask(c.Process) }
	c.WaitDelay = grace
	if r.err = c.Start(); r.err != nil {
		return r
	}
	var unwanted atomic.Bool
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(asking)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				if stop != nil && stop() {
					unwanted.Store(true)
					end()
					return
				}
			}
		}
	}()
	err := c.Wait()
	finish(c.Process) // what it started and left
	r.cut = unwanted.Load()
	r.late = !r.cut && ctx.Err() != nil
	close(done)
	r.out, r.said, r.code = out.Bytes(), said.String(), c.ProcessState.ExitCode()
	if err != nil && r.said == "" {
		r.said = err.Error()
	}
	return r
}

// outcome is what its document says, or why there is none.
func (r *ran) outcome(f *scn.File, within time.Duration) (*swarm.Outcome, error) {
	switch {
	case r.err != nil:
		return nil, &Lacking{r.err.Error()}
	case r.cut:
		return &swarm.Outcome{Cut: true}, nil
	case r.late:
		return &swarm.Outcome{Unknown: fmt.Sprintf("the run had not ended after %v of this machine's time", within)}, nil
	case r.code == runner.ExitInterrupted:
		return &swarm.Outcome{Cut: true}, nil
	}
	if len(bytes.TrimSpace(r.out)) == 0 && r.code == runner.ExitLacking {
		return nil, &Lacking{strings.TrimPrefix(oneLine(r.said), "enilab: ")}
	}
	d, err := parse(r.out)
	if err != nil {
		return &swarm.Outcome{Unknown: fmt.Sprintf("the run ended with code %d: %v; it said: %s", r.code, err, oneLine(r.said))}, nil
	}
	return outcome(d, f)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// bounded keeps the begin of what is written.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct {
	data []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-t.most):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.data) }

var _ swarm.Player = (*Player)(nil)
