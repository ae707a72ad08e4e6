package vm

import (
	"io"
	"time"
)

// Lacking is an error of a computer or a kernel that lacks something: what is missing, and what to do.
type Lacking struct{ Why string }

func (e *Lacking) Error() string { return e.Why }

// Lacks tells it from the errors of what is played.
func (*Lacking) Lacks() {}

// Invalid is an error of what was asked for, and says what to ask for.
type Invalid struct{ Why string }

func (e *Invalid) Error() string { return e.Why }

// Machine is what a virtual machine is made of. It can be run many times, also at the same time.
type Machine struct {
	Kernel *Kernel
	// Emulator is QEMU's path; empty: the usual name for the kernel's architecture, in PATH.
	Emulator string
	// Image is what its file system begins with, beside the modules and enilab itself.
	Image *Image
	// Modules are loaded beside those of every machine; a kernel may lack them (see Kernel.Has).
	Modules []string
	// Self is the host path of enilab.
	Self string
	// Words are added to the kernel's command line, and so to its entropy.
	Words string
	// Timeout is how long one run may take, in the host's time.
	Timeout time.Duration
	// Quiet is how long its emulator may work while nothing at all is heard of a machine, in CPU time; five times as long where it does nothing. Time in which it
	// waits for a CPU does not count.
	Quiet time.Duration
	// Pause is where the machine stops for good, for somebody to look around; nil: it does not. Nothing that happens before depends on it.
	Pause *Pause

	ready // see Prepare
}

// Sinks are where a machine's output goes as it comes.
type Sinks struct {
	Stdout, Stderr io.Writer
	// File opens one that the machine hands out, by its path below Job.Out; nil: files are left there.
	File func(name string) (io.WriteCloser, error)
}

// Result is what came of a run.
type Result struct {
	Code    int    // the command's exit code; of one that was paused 0
	Paused  bool   // and a shell was there
	Console []byte // what the machine's kernel said
	Began   time.Duration
	Ended   time.Duration // machine's time at which the command began, and init was alive last
	Wall    time.Duration // host's time
	First   time.Duration // host's time until the command began
	CPU     time.Duration // of the host, for all of it
	BootCPU time.Duration // of that until the command began
}
