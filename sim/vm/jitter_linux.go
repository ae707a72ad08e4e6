package vm

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/splitmix"
)

// jitter takes the CPU from everybody at instants that the seed draws, while somebody works: what other processes, interrupts and
// neighbours do to a node's scheduling, made to repeat. At the first such look after an instant of the scenario it pauses the machine, if somebody
// wants that: nothing is done for it before, so that until then such a run is the one that nobody pauses.
func (i *guest) jitter() {
	runtime.LockOSThread()
	f, err := os.Open(runGroup + "/cpu.stat")
	if err != nil {
		return // without it the seed's entropy is all that differs
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0); err != nil {
		return
	}
	state := i.job.Seed ^ splitmix.Golden // not the numbers that the kernel was given
	draw := func(most time.Duration) time.Duration { return time.Duration(splitmix.Next(&state) % uint64(most)) }
	before, used := now(), usage(f)
	for factor := time.Duration(1); ; {
		pause(factor * draw(pauseMost))
		at, use := now(), usage(f)
		if zero := i.scene.get(zeroAt); zero != 0 && at-time.Duration(zero) >= i.channel.noted(pauseAt) {
			i.pause()
		}
		busy := (use-used)*100 >= (at-before)*busyPercent
		factor = idleFactor
		if busy {
			factor = 1
			for end := now() + draw(takeMost); now() < end; {
			}
		}
		before, used = now(), usage(f)
	}
}

func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil)
}

// usage is how long the command and its children have had the CPU.
func usage(f *os.File) time.Duration {
	var b [256]byte
	n, _ := f.ReadAt(b[:], 0)
	line, _, _ := bytes.Cut(b[:n], []byte("\n"))
	us, _ := strconv.ParseInt(string(bytes.TrimPrefix(line, []byte("usage_usec "))), 10, 64)
	return time.Duration(us) * time.Microsecond
}
