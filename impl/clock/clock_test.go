package clock

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// laboratory serves one daemon's clock.
func laboratory(t *testing.T, offset time.Duration) (*Clock, *Seat) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock.sock")
	l := must.Get(net.Listen("unix", path))(t)
	defer l.Close()
	seats := make(chan *Seat, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		s, err := NewSeat(conn, offset)
		if err != nil {
			t.Error(err)
		}
		seats <- s
	}()
	c := must.Get(Dial(path))(t)
	s := <-seats
	t.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}

func TestJumps(t *testing.T) {
	c, s := laboratory(t, time.Hour)
	if early := boottime() + time.Hour; c.Now() < early {
		t.Errorf("now is %v, before the laboratory's %v", c.Now(), early)
	}
	for _, offset := range []time.Duration{2 * time.Hour, 90 * time.Minute} { // the second runs backwards
		must.Do(t, s.Tell(offset))
		select {
		case <-c.Moved():
		case <-time.After(20 * time.Second):
			t.Fatal("no word of a jump within 20 s")
		}
		if early := boottime() + 2*time.Hour - time.Minute; c.Now() < early {
			t.Errorf("told %v: now is %v, before %v", offset, c.Now(), early)
		}
	}
}

func TestReport(t *testing.T) {
	c, s := laboratory(t, time.Minute)
	want := State{Next: -1, Remote: 3, Requests: 2, Steps: 1 << 40}
	c.Idle(want)
	got := must.Get(s.Read())(t)
	if got.State != want || got.Offset != time.Minute {
		t.Errorf("report %+v, want %+v at offset 1m", got, want)
	}
	c.Close()
	if _, err := s.Read(); err == nil {
		t.Error("a daemon that is gone still reports")
	}
}

func TestBoot(t *testing.T) {
	c := Boot()
	a := c.Now()
	c.Idle(State{})
	if b := c.Now(); b < a {
		t.Errorf("the clock runs backwards: %v, then %v", a, b)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoLaboratory(t *testing.T) {
	if _, err := Dial(filepath.Join(t.TempDir(), "nobody.sock")); err == nil {
		t.Error("a clock that nobody serves tells the time")
	}
}
