package clock

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// Seat is the laboratory's end of one daemon's clock.
type Seat struct{ conn net.Conn }

// NewSeat takes a daemon's connection and tells it the time.
func NewSeat(conn net.Conn, offset time.Duration) (*Seat, error) {
	s := &Seat{conn}
	return s, s.Tell(offset)
}

// Tell says that the clock has jumped: it is CLOCK_BOOTTIME plus offset now.
func (s *Seat) Tell(offset time.Duration) error {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(offset))
	_ = s.conn.SetWriteDeadline(time.Now().Add(dialTimeout)) // a daemon that reads nothing is dead
	_, err := s.conn.Write(b[:])
	return err
}

// Read waits for the next report. An error is the daemon's end.
func (s *Seat) Read() (Report, error) {
	var b [reportSize]byte
	if _, err := io.ReadFull(s.conn, b[:]); err != nil {
		return Report{}, err
	}
	return decode(&b), nil
}

// Close hangs up.
func (s *Seat) Close() error { return s.conn.Close() }
