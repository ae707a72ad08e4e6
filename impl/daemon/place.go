package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/settings"
)

// placing is how far the conflist is. It is written once in a daemon's life, when pods can be taken, and stays when the daemon ends: a runtime
// without one reports the network down, and pods are evicted for it (rule J). Whatever others do to it later is theirs.
type placing struct {
	*life
	begun   bool   // and not tried yet
	failed  int    // tries
	why     string // it is not as it should be
	missing bool   // there is none that a runtime could use
}

// begin writes the conflist, if that is this daemon's business, and tries again until it is written.
func (pl *placing) begin() {
	if pl.c.ConfDir == "" || pl.stopping {
		return
	}
	pl.begun = pl.failed == 0
	pl.work(func() func() {
		p := place(pl.c.ConfDir, pl.c.Conflist)
		return func() { pl.placed(p) }
	})
}

func (pl *placing) placed(p placement) {
	was := *pl
	*pl = placing{life: was.life, failed: was.failed + 1, missing: p.missing}
	if p.err == nil {
		if p.changed {
			pl.log.Info("the conflist is written", "file", p.path)
		} else {
			pl.log.Info("the conflist is as it should be", "file", p.path)
		}
		return
	}
	pl.why = "the conflist cannot be written: " + p.err.Error()
	if was.why != pl.why {
		pl.log.Error("the conflist cannot be written; ipamd tries again", "file", p.path, "usable", !p.missing, "err", p.err)
	}
	pl.after(pl.clock.Now()+growing(conflistRetry, was.failed), pl.begin)
}

// placement is one try.
type placement struct {
	path    string
	changed bool
	missing bool // there is no list that a runtime could use
	err     error
}

// place makes the conflist what it should be, with what others have chained into it. One that cannot be understood
// stays: another project's plugin may be in it.
func place(dir string, o conflist.Options) (p placement) {
	p.path = filepath.Join(dir, conflist.Name)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		p.missing, p.err = true, fmt.Errorf("%s is no folder; mount the host's /etc/cni/net.d there (a hostPath volume), or say where it is with HOST_CNI_CONFDIR_PATH", dir)
		return p
	}
	there, err := readBounded(p.path, maxConflist)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.missing, p.err = true, fmt.Errorf("read %s: %w", p.path, err)
		return p
	}
	list, err := conflist.Merge(there, o)
	if err != nil {
		p.missing, p.err = true, fmt.Errorf("%s stays as it is, for others may be chained into it: %w; repair it, or remove it", p.path, err)
		return p
	}
	if bytes.Equal(there, list) {
		return p
	}
	// The name on the way is no conflist's to a runtime, which reads *.conf, *.conflist and *.json.
	if err := replace(p.path, list, 0o644); err != nil {
		p.missing, p.err = len(bytes.TrimSpace(there)) == 0, err
		return p
	}
	p.changed = true
	return p
}

// conflistOf are the settings that the plugin hears of, and the plugins that they chain.
func conflistOf(s *settings.Settings) conflist.Options {
	o := conflist.Options{VethPrefix: s.IPAM.VethPrefix, MTU: s.IPAM.MTU, PodSGEnforcingMode: s.PodSGEnforcingMode,
		PluginLogFile: s.PluginLogFile, PluginLogLevel: s.PluginLogLevel, Chained: []json.RawMessage{conflist.PortMap()}}
	if s.Socket != ipc.Socket {
		o.Socket = s.Socket
	}
	if s.RunDir != filepath.Dir(ipc.Socket) {
		o.StateDir = s.RunDir
	}
	if s.Bandwidth {
		o.Chained = append(o.Chained, conflist.Bandwidth())
	}
	if s.NoPodV6 {
		o.Chained = append(o.Chained, conflist.NoIPv6())
	}
	return o
}
