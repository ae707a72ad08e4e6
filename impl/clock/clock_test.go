package clock

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// laboratory serves one daemon's clock.
func laboratory(t *testing.T, offset time.Duration) (*Clock, *Seat) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
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
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := s.Tell(offset); err != nil {
			t.Fatal(err)
		}
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
	got, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
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
