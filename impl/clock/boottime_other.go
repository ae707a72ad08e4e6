//go:build !linux

package clock

import "time"

var began = time.Now()

// boottime is the time since the process began where there is no CLOCK_BOOTTIME: the daemon itself needs Linux, its tests do not.
func boottime() time.Duration { return time.Since(began) }

// Wall is the wall clock at boot, in seconds since 1970.
func Wall() int64 { return began.Unix() }
