package netns

import (
	"bufio"
	"debug/buildinfo"
	"fmt"
	"net"
	"runtime/debug"

	"github.com/enilab/enilab/impl/clock"
)

// recordedHeader begins a life.
func (d *nodeDaemon) recordedHeader(no int, line []byte) {
	n, w := d.n, d.n.w
	if no != d.lifeNo || n.Gone {
		return
	}
	l, err := w.witness.Open(n.No, line)
	if err != nil {
		w.fail(fmt.Errorf("%s: the recording cannot be replayed%s: %w", n.Name(), builds(w.parts.Ipamd), err))
		return
	}
	d.heard(&life{Life: l, no: no})
	w.log("%s: life %d begins", n.Name(), no)
}

// recorded is one step of a daemon.
func (d *nodeDaemon) recorded(no int, line []byte) {
	l := d.life
	if l == nil || l.no != no {
		return
	}
	d.n.Changed = true
	if err := l.Step(line); err != nil {
		d.n.disagree("replay: %v", err)
		w := d.n.w
		w.fail(fmt.Errorf("%s: the daemon does not decide as the core does%s: %w", d.n.Name(), builds(w.parts.Ipamd), err))
	}
}

// takeClock is a daemon that asks for the time.
func (d *nodeDaemon) takeClock(conn net.Conn) {
	w := d.n.w
	var seat *clock.Seat
	w.mail.Ask(func() {
		s, err := clock.NewSeat(conn, w.clock.offset)
		if err != nil {
			return
		}
		d.leave()
		d.seat, seat = s, s
	})
	if seat != nil {
		go d.followClock(seat)
	}
}

// followClock takes a daemon's reports to their end.
func (d *nodeDaemon) followClock(seat *clock.Seat) {
	for {
		r, err := seat.Read()
		if err != nil {
			return
		}
		d.n.w.mail.Post(func() {
			if d.seat == seat { // else it is the word of a daemon that has died since
				d.report = &r
				d.waits()
			}
		})
	}
}

// fence is what the laboratory itself writes to the socket of recordings once a daemon has ended: connections are taken in their order,
// so when it arrives all that the dead one had to tell has been read, also what still waited to be accepted.
const fence = "fence\n"

// fenceRecording lets died follow when a dead daemon's recording has been read to its end.
func (d *nodeDaemon) fenceRecording() {
	n, w := d.n, d.n.w
	conn, err := net.Dial("unix", n.box.Root()+recordSocket)
	if err == nil {
		_, err = conn.Write([]byte(fence))
		conn.Close()
	}
	if err != nil {
		w.mail.Post(func() { w.fail(fmt.Errorf("%s: end its recording: %w", n.Name(), err)) })
	}
}

// takeRecording follows a daemon's flight recorder to its end.
func (d *nodeDaemon) takeRecording(conn net.Conn) {
	w := d.n.w
	defer conn.Close()
	var no int
	w.mail.Ask(func() { no = d.lifeNo }) // of the daemon that connects: what it tells late is no word of the next one
	r := bufio.NewReaderSize(conn, 1<<16)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil {
			w.mail.Post(func() { d.hangsUp(no) })
			return
		}
		text := line[:len(line)-1]
		switch {
		case first && string(line) == fence:
			w.mail.Post(d.died)
		case first:
			w.mail.Post(func() { d.recordedHeader(no, text) })
		default:
			w.mail.Post(func() { d.recorded(no, text) })
		}
	}
}

// hangsUp: a life has no more to tell.
func (d *nodeDaemon) hangsUp(no int) {
	if d.life != nil && d.life.no == no {
		d.life.ended = true
	}
}

// waits is a daemon that has said that it waits. Without a recording its life begins with the first time.
func (d *nodeDaemon) waits() {
	n, w := d.n, d.n.w
	if !w.parts.WithoutBooks || d.phase == absent || d.life != nil || n.Gone {
		return
	}
	d.heard(&life{no: d.lifeNo})
	n.Changed = true
	w.witness.Runs(n.No, &n.Settings)
	w.Ran(&n.Node)
	w.log("%s: life %d begins, without books", n.Name(), d.lifeNo)
}

// builds says that a program is of another commit than this one, and what to do; "" where it is not, or where one of
// them does not say.
func builds(path string) string {
	theirs, err := buildinfo.ReadFile(path)
	own, ok := debug.ReadBuildInfo()
	if err != nil || !ok {
		return ""
	}
	return unlike(path, theirs.Main.Version, own.Main.Version)
}

func unlike(path, theirs, own string) string {
	const unstamped = "(devel)" // built without git, or with -buildvcs=false
	if theirs == own || theirs == "" || own == "" || theirs == unstamped || own == unstamped {
		return ""
	}
	return fmt.Sprintf(" (%s is %s and this program %s: make build makes both)", path, theirs, own)
}
