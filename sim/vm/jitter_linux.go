package vm

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/splitmix"
)

// The jitter's measures: the command and its children work for between none and workMost, and then lose the CPU for between none and takeMost:
// a twentieth of it.
const (
	workMost = 20 * time.Millisecond
	takeMost = time.Millisecond
)

// jitter takes the CPU from everybody at instants that the seed draws: what other processes, interrupts and neighbours do to a node's scheduling,
// made to repeat. The instants are of CPU time, so that a short piece of work meets them too, and nobody is woken while nobody works: each time
// would cost the host as much as a process does that starts.
func (c *cpuClock) jitter(seed uint64) {
	runtime.LockOSThread()
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0); err != nil {
		return
	}
	state := seed ^ splitmix.Golden // not the numbers that the kernel was given
	draw := func(most time.Duration) time.Duration { return time.Duration(splitmix.Next(&state) % uint64(most)) }
	for c.wait(draw(workMost)) == nil {
		for end := now() + draw(takeMost); now() < end; {
		}
	}
}

// cpuClock is the time for which the processes of a cgroup have had the CPU: an event of the kernel's perf, whose timer runs only while they do.
type cpuClock struct {
	fd  int
	mem []byte // without a buffer there are no events to wait for
}

// shortest is the shortest period that the kernel's clock knows.
const shortest = 10 * time.Microsecond

func newCPUClock(cgroup int) (*cpuClock, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: uint64(workMost), Wakeup: 1}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, cgroup, 0, -1, unix.PERF_FLAG_PID_CGROUP|unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("follow the CPU time of the command (perf events of a cgroup): %w", err)
	}
	mem, err := unix.Mmap(fd, 0, 2*unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("map the events of the command's CPU time: %w", err)
	}
	return &cpuClock{fd, mem}, nil
}

// wait returns when the processes have had the CPU for d from now on.
func (c *cpuClock) wait(d time.Duration) error {
	period := uint64(max(d, shortest))
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&period))); no != 0 {
		return no
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return err
		}
	}
}

func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil)
}
