// Package wait lets time pass, unless the caller goes.
package wait

import (
	"context"
	"time"
)

// For returns after d, or with ctx's error once that is done. It does not wait for what is over already.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
