package server

import (
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// maxTokens is the largest bucket that the arithmetic holds.
const maxTokens = 1 << 30

// bucket is a token bucket that is full at first. A token is a second of a refill of one a second, so nothing is rounded.
type bucket struct {
	mu    sync.Mutex
	spent time.Duration // tokens that are gone
	at    time.Duration // when it was last refilled
}

// take takes a token at now, and says whether there was one. A clock that goes back refills nothing.
func (b *bucket) take(size ec2.Bucket, now time.Duration) bool {
	if size == (ec2.Bucket{}) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if gone := now - b.at; gone > 0 {
		b.at = now
		if rate := time.Duration(min(size.RefillPerSecond, maxTokens)); rate > 0 {
			b.spent -= min(b.spent, rate*min(gone, b.spent/rate+1))
		}
	}
	if b.spent+time.Second > time.Duration(min(size.Capacity, maxTokens))*time.Second {
		return false
	}
	b.spent += time.Second
	return true
}
