package vm

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// IsTerminal says whether somebody types into a file.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// windowSize is a terminal's; of what is none, the usual.
func windowSize(f *os.File) (rows, cols uint16) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Row == 0 || w.Col == 0 {
		return 24, 80
	}
	return w.Row, w.Col
}

// visitEvery is how often the host looks after a machine in which somebody types: so long at most its time goes on while he does not.
const visitEvery = time.Millisecond

// visit is somebody at a terminal who looks around in a machine that has paused.
type visit struct {
	errand  *errand
	process *os.Process // the emulator
	front   *os.File
	before  *unix.Termios
	input   chan []byte
	stopped bool
}

// visit gives the terminal to the machine: what is typed goes there, Control-C too.
func (r *run) visit(p *os.Process) (*visit, error) {
	v := &visit{errand: &r.errand, process: p, front: r.Pause.Terminal, input: make(chan []byte)}
	before, err := unix.IoctlGetTermios(int(v.front.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(v.front.Fd()), unix.TCSETS, &raw); err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	v.before = before
	go func() {
		for {
			b := make([]byte, 1024)
			n, err := v.front.Read(b)
			if err != nil {
				return
			}
			v.input <- b[:n] // nobody takes the last one, and the process ends
		}
	}()
	return v, nil
}

// typed has what somebody types. Of nobody there is nothing.
func (v *visit) typed() <-chan []byte {
	if v == nil {
		return nil
	}
	return v.input
}

// look stops the emulator once the machine waits for input: its time is instructions, and stands while it carries out none.
func (v *visit) look() {
	if asks := v.errand.get(asksAt); !v.stopped && asks != 0 && v.errand.get(givenAt)+1 == asks {
		v.stopped = v.process.Signal(unix.SIGSTOP) == nil
	}
}

// give hands over what was typed, and lets the machine go on. More than there is room for is lost.
func (v *visit) give(typed []byte) {
	_ = v.errand.give(typed)
	if v.stopped {
		_ = v.process.Signal(unix.SIGCONT)
		v.stopped = false
	}
}

// end gives the terminal back.
func (v *visit) end() {
	if v != nil {
		_ = unix.IoctlSetTermios(int(v.front.Fd()), unix.TCSETS, v.before)
	}
}
