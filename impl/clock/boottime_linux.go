package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime is CLOCK_BOOTTIME (clock_gettime(2)). The call has no error that this use could cause.
func boottime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// Wall is the wall clock at boot, in seconds since 1970.
func Wall() int64 { return time.Now().Add(-boottime()).Unix() }
