package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipc"
)

// own waits until this node is this daemon's: its folder is locked, no other CNI's daemon answers, and the socket is ours. It is
// false when the daemon shall end before that.
func (d *daemon) own(ctx context.Context) bool {
	ok := d.wait(ctx, func() (err error) {
		if err = os.MkdirAll(d.c.RunDir, 0o755); err != nil {
			return fmt.Errorf("make the folder of records: %w", err)
		}
		d.lock, err = lock(d.c.RunDir)
		return err
	})
	ok = ok && d.wait(ctx, func() error { return probe(d.c.Rival, d.c.Socket, probeTimeout) })
	return ok && d.wait(ctx, func() error {
		if err := os.MkdirAll(filepath.Dir(d.c.Socket), 0o755); err != nil {
			return fmt.Errorf("make the folder of the socket: %w", err)
		}
		l, err := ipc.Listen(d.c.Socket)
		d.server.listener = l
		return err
	})
}

// wait tries until it works, and says once why it does not. It is false when ctx ended first.
func (d *daemon) wait(ctx context.Context, try func() error) bool {
	said := ""
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		err := try()
		if err == nil {
			return true
		}
		if text := err.Error(); text != said {
			d.log.Warn("ipamd waits and serves nothing", "why", text)
			said = text
		}
		if !d.sleep(ctx, d.clock.Now()+pause) {
			return false
		}
	}
}

// sleep waits for an instant before the loop runs. It is false when ctx ended first.
func (d *daemon) sleep(ctx context.Context, at time.Duration) bool {
	for d.clock.Now() < at {
		d.clock.Idle(clock.State{Next: at, Steps: d.steps})
		select {
		case <-ctx.Done():
			return false
		case <-d.clock.Moved():
		case <-time.After(at - d.clock.Now()):
		}
	}
	return ctx.Err() == nil
}

// holderFile says which process has the lock: for people, the lock is the kernel's.
const holderFile = "ipamd.pid"

// holder is who says to have the lock on a folder.
func holder(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, holderFile))
	if err != nil || len(data) > 32 {
		return "an unnamed process"
	}
	return "process " + strings.TrimSpace(string(data))
}

// probe is an error while another CNI's daemon answers. Our own socket is ipc.Listen's business.
func probe(rival, own string, timeout time.Duration) error {
	if rival == "" || rival == own {
		return nil
	}
	network := "tcp"
	if strings.HasPrefix(rival, "/") {
		network = "unix"
	}
	c, err := net.DialTimeout(network, rival, timeout)
	if err != nil {
		return nil
	}
	c.Close()
	return fmt.Errorf("another CNI's daemon answers at %s, and two daemons never run on one node; stop it first", rival)
}
