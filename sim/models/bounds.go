package models

import (
	"math"
	"time"
)

// Never is an instant that does not come.
const Never = time.Duration(math.MaxInt64)

// How long a caller waits for what does not answer, and a machine for what starts.
const (
	SDKTimeout   = 10 * time.Second // HTTP_TIMEOUT: when a lost answer of EC2's is given up
	HangTimeout  = 3 * time.Second  // of a runtime or metadata endpoint that does not answer
	RestartPause = 2 * time.Second  // until kubelet starts the container of a dead daemon again
	BootTime     = 30 * time.Second // until kubelet and runtime come back after a reboot
)
