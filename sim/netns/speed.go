package netns

import (
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
	// probeLimit bounds how long the loop waits for a probe because the machine is slow. Requests of daemons wait behind it, whose own bounds do not
	// grow: ten seconds for a runtime's list, with up to three probes in that time.
	probeLimit = 3 * time.Second
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
