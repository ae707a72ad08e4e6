package node

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// children are the processes that the helper waits for. Being PID 1 it inherits all others whose parents die, and has to wait for those
// too, without taking away the exit status that os/exec waits for.
type children struct {
	starting sync.RWMutex // a child that has been forked is in own before orphans are looked for
	own      sync.Map     // PIDs that a goroutine waits for
}

func (c *children) start(cmd *exec.Cmd) error {
	c.starting.RLock()
	defer c.starting.RUnlock()
	err := cmd.Start()
	if err == nil {
		c.own.Store(cmd.Process.Pid, true)
	}
	return err
}

func (c *children) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	c.own.Delete(cmd.Process.Pid)
	c.reap() // it may have stood before an orphan
	return err
}

// reapOrphans waits for orphans as long as the process lives.
func (c *children) reapOrphans() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			c.reap()
		}
	}()
}

// reap takes every dead orphan up to the first child that a goroutine waits for, which will come back here.
func (c *children) reap() {
	c.starting.Lock()
	defer c.starting.Unlock()
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		pid := int(pidOf(&info))
		if err != nil || pid == 0 {
			return
		}
		if _, own := c.own.Load(pid); own {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

// pidOf reads si_pid, the first field of siginfo_t's union, which begins at the first multiple of a pointer's size after si_code.
func pidOf(info *unix.Siginfo) int32 {
	const word = unsafe.Sizeof(uintptr(0))
	return *(*int32)(unsafe.Add(unsafe.Pointer(info), (12+word-1)/word*word))
}
