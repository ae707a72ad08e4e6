// Package clock is a daemon's time: CLOCK_BOOTTIME, which counts while the machine sleeps and does not jump with the
// wall clock, or a laboratory's.
//
// A laboratory's clock is CLOCK_BOOTTIME too, plus an offset that only grows: it passes as real time does while anything works,
// and jumps when everybody waits. So a daemon says when it has nothing to do, and until when ([Clock.Idle]); the laboratory
// ([Seat]) tells every daemon the new offset when it has jumped. Nothing that takes time is distorted, and twenty quiet minutes
// take milliseconds.
//
// On the socket the laboratory writes offsets, 8 bytes each, and the daemon writes reports of 40 bytes; all numbers are
// big-endian.
package clock
