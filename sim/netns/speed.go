package netns

import (
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// The bounds of this package, in real time, are made for a machine like the one where reference was measured. On a slower one, or on one
// that has other things to do, they are as many times longer.

// reference is how long a child that does nothing takes from its start to its end where nothing else wants the
// processors: 0.9 ms on two cores of an AMD EPYC virtual machine with Linux 6.18, and half as much again for older
// ones.
const reference = 1500 * time.Microsecond

const (
	// rounds are enough to meet a time slice of other busy processes, and few enough to go unnoticed: 30 ms.
	rounds = 20
	// worstSlowness bounds what is waited for: on a machine that is slower a run ends as too slow.
	worstSlowness = 20
	// lagSlack is how late this package may act before what failed in its run says nothing. Scenarios leave seconds between cause and
	// expectation, and the auditors' own bounds are a minute and more, or follow the slowness.
	lagSlack = time.Second
	// probeLimit bounds how long the loop waits for a probe because the machine is slow. Requests of daemons wait behind it, whose own bounds do not
	// grow: ten seconds for a runtime's list, with up to three probes in that time.
	probeLimit = 3 * time.Second
	// looks is how often a machine has to seem much slower.
	looks = 3
	// muchSlower is how many times slower the machine has to be when something failed than when it was measured first.
	muchSlower = 3
)

// slowness is how many times slower than the reference this machine is, at least 1. It is measured once a process: bounds that move while they are waited for are
// none.
var slowness = sync.OnceValue(func() float64 { return min(worstSlowness, max(1, measureSlowness())) })

// measureSlowness starts children that do nothing, and waits for them: what a laboratory does most, and what suffers most when others
// want the processors.
func measureSlowness() float64 {
	path, err := exec.LookPath("true")
	if err != nil {
		return 1
	}
	began := time.Now()
	for range rounds {
		if exec.Command(path).Run() != nil {
			return 1
		}
	}
	return float64(time.Since(began)) / float64(rounds*reference)
}

// slowed is a bound on this machine.
func slowed(d time.Duration) time.Duration { return time.Duration(float64(d) * slowness()) }

// probed is how long a probe's answer is waited for on this machine.
func probed(d time.Duration) time.Duration { return min(slowed(d), max(d, probeLimit)) }

// tooSlow is an error that is this machine's fault: what a run says under it counts for nothing.
type tooSlow struct{ why string }

func (e *tooSlow) Error() string { return "this machine did not keep up: " + e.why }

// TooSlow tells it from a laboratory that is broken and from a daemon that is wrong.
func (e *tooSlow) TooSlow() {}

// lateness is how much later than they were due things were done by the loop.
type lateness struct {
	most time.Duration
	at   time.Duration // instant of the scenario
	// rested is the end of what the loop itself chose to wait for, such as a ping's answer: what fell due meanwhile is no later than that.
	rested time.Duration
}

// rests notes that the loop has just waited for something by its own choice.
func (l *loop) rests() { l.late.rested = l.now() }

// acted notes that something which was due at an instant is done now.
func (l *loop) acted(due time.Duration) {
	now := l.now()
	if late := now - max(due, l.late.rested); late > l.late.most {
		l.late.most, l.late.at = late, now-l.epoch
	}
}

// TooSlow says why what failed in this run says nothing about the CNI; nil: it does say something. The error has a method TooSlow.
func (l *loop) TooSlow() error {
	if l.late.most > lagSlack {
		return &tooSlow{fmt.Sprintf("at %v of the scenario the laboratory acted %v late, of at most %v (run it with fewer things beside it)",
			l.late.at.Round(time.Millisecond), l.late.most.Round(time.Millisecond), lagSlack)}
	}
	var now float64
	for range looks { // a program that has just started is not what the whole run went through
		if now = measureSlowness(); now <= muchSlower*slowness() {
			return nil
		}
	}
	return &tooSlow{fmt.Sprintf("it is %.1f times slower than the reference now, and was %.1f times when it was measured first", now, slowness())}
}

// stuck is how the world ends when a node is busy for longer than a machine of this speed takes.
func (l *loop) stuck(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if late := l.TooSlow(); late != nil {
		err = &tooSlow{fmt.Sprintf("%v; %v", err, late)}
	}
	l.fail(err)
}
