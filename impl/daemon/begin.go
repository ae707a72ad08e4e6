package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipam"
)

// Files of RunDir and LibDir.
const (
	bootFile   = "boot"      // names the boot whose pods the records speak of; a tmpfs loses it
	servedFile = "served"    // a daemon has served on this node since then
	libFile    = "enis.json" // LibStore
	intentDir  = "del"       // DEL intents
)

// begin reads the records and steps the Node for the first time.
func (d *daemon) begin() error {
	d.began = d.clock.Now()
	d.sayAgain = d.began + reasonsPause
	for _, p := range slices.Concat(d.c.Unusual, d.c.Unread) {
		d.log.Warn("a setting", "what", p)
	}
	if len(d.c.Unread) > 0 {
		d.news.settings(unknownSetting, join(d.c.Unread))
	}
	if len(d.c.Problems) > 0 {
		d.news.settings(invalidSettings, "this node takes no pods: "+join(d.c.Problems))
		d.log.Error("the settings cannot be; this node takes no pods until they are changed", "problems", join(d.c.Problems))
		return nil
	}
	d.after(d.began+policiesFirst, d.news.policies)
	d.before = exists(filepath.Join(d.c.RunDir, servedFile))
	d.wasReady.Store(d.before)
	in := ipam.Start{Boot: bootID(), Seed: seed(), Daemon: d.c.self(), Version: d.c.Version, Wall: clock.Wall(), Cluster: d.c.Cluster, Settings: d.c.Settings, Booted: d.c.Booted}
	in.Rebooted = rebooted(d.c.RunDir, d.c.Checkpoint, in.Boot)
	if err := os.MkdirAll(d.c.LibDir, 0o755); err != nil {
		d.log.Warn("the folder of EC2 intents cannot be made; no ENI can be made or given back", "err", err)
	}
	d.readStore(ipam.RunStore, &file{path: d.c.Checkpoint, kind: ipam.RunStore, version: d.c.Version, wall: in.Wall}, &in)
	d.readStore(ipam.LibStore, &file{path: filepath.Join(d.c.LibDir, libFile), kind: ipam.LibStore, version: d.c.Version, wall: in.Wall}, &in)
	// After the records were read and before the first step: who dies in between finds the same marker and the same records again.
	if err := replace(filepath.Join(d.c.RunDir, bootFile), []byte(in.Boot+"\n"), recordMode); err != nil {
		d.log.Warn("the marker of this boot cannot be written: the next daemon may take its start for a reboot's", "err", err)
	}
	d.log.Info("ipamd starts", "rows", len(in.Rows), "rebooted", in.Rebooted, "version", d.c.Version, "policy", d.c.Parts.PolicyName)
	var err error
	if d.node, err = ipam.New(d.c.Parts.Policy); err != nil {
		return err
	}
	d.step(in)
	d.watchKernel()
	d.watchNode()
	d.watchIntents()
	return nil
}

// readStore reads a store's rows into what the Node starts with. What could not be read is said and missing (rule A: nothing is freed for it).
func (d *daemon) readStore(kind ipam.Store, f *file, in *ipam.Start) {
	d.saves[kind].store = f
	if d.c.Parts.Store != nil {
		d.saves[kind].store = d.c.Parts.Store(f)
	}
	rows, written, err := d.saves[kind].store.Read()
	if err != nil {
		in.Unread = strings.TrimPrefix(in.Unread+"; "+err.Error(), "; ")
		d.log.Error("a record cannot be read; its rows are rebuilt from kernel and runtime, and nothing is freed", "err", err)
		return
	}
	if written != 0 && written != d.c.Version {
		d.log.Info("a record was written by another version", "file", f.path, "wrote", written, "speaks", d.c.Version)
	}
	in.Rows = append(in.Rows, rows...)
}

// rebooted says whether the machine has started since the records of allocations were written. Without a marker that is so, unless
// there are allocations: then another CNI, which makes no marker, wrote them into the same tmpfs. An empty marker is none.
func rebooted(dir, checkpoint, boot string) bool {
	data, err := os.ReadFile(filepath.Join(dir, bootFile))
	was := strings.TrimSpace(string(data))
	if errors.Is(err, fs.ErrNotExist) || err == nil && was == "" {
		return !exists(checkpoint)
	}
	return err == nil && boot != "" && was != boot
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func seed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.LittleEndian.Uint64(b[:])
}

// self is Start.Daemon.
func (c *Config) self() string {
	switch {
	case c.Sandbox != "":
		return c.Sandbox
	case c.Self.Name != "":
		return Self
	}
	return ""
}

// noticeServing remembers that this node can take pods. One that has never had an address, and should get some, cannot: where EC2 refuses
// that from the start, pods belong on other nodes (rule J).
func (d *daemon) noticeServing() {
	if d.served {
		return
	}
	if d.node.View(&d.view); !d.view.Serving || bare(&d.view) {
		return
	}
	d.served = true
	d.wasReady.Store(true)
	d.log.Info("ipamd serves", "after", d.clock.Now()-d.began, "assigned", d.view.Assigned, "free", d.view.Free, "enis", len(d.view.ENIs))
	if err := os.WriteFile(filepath.Join(d.c.RunDir, servedFile), nil, 0o644); err != nil {
		d.log.Warn("that this node has served cannot be remembered", "err", err)
	}
	d.placeConflist()
}

// bare says whether a node has no address and will ask for some. A node that may not, or is cordoned, has what it has.
func bare(v *ipam.View) bool {
	return v.Free+v.Assigned+v.Cooling+v.Quarantined == 0 && v.Settings.Provisions()
}

// sayWhy logs why pods cannot be taken or the node is impaired, when that has changed. What changes within a pause is said at its end,
// and a start that takes less time is no news.
func (d *daemon) sayWhy() {
	now := d.clock.Now()
	if d.node == nil || d.steps == d.looked && !d.unsaid {
		return
	}
	d.looked = d.steps
	d.node.View(&d.view)
	why := join(d.view.Reasons)
	d.unsaid = why != d.reasons && now < d.sayAgain
	if why == d.reasons || d.unsaid {
		return
	}
	d.reasons, d.sayAgain = why, now+reasonsPause
	if why == "" {
		d.log.Info("all is well")
	} else {
		d.log.Warn("the node is impaired", "serving", d.view.Serving, "why", why)
	}
}

// ready is STATUS, and why pods cannot be taken or the node is impaired. It is false only before the node has ever served since
// it was started, or when a daemon is not back to serving within statusGrace: every failed STATUS makes containerd report the
// network down, and pods are evicted for it (rule J).
func (d *daemon) ready() (bool, []string) {
	if d.node == nil {
		return false, d.c.Problems
	}
	d.node.View(&d.view)
	reasons := append([]string(nil), d.view.Reasons...)
	if since := (d.clock.Now() - d.began).Round(time.Millisecond); !d.view.Serving && len(reasons) == 0 {
		reasons = []string{fmt.Sprintf("ipamd recovers since %v", since)}
	} else if len(reasons) == 0 && !d.served {
		reasons = []string{fmt.Sprintf("EC2 has given this node no address for pods since ipamd started %v ago", since)}
	}
	for _, why := range []string{d.placing.why, d.unprotected()} {
		if why != "" {
			reasons = append(reasons, why)
		}
	}
	reasons = append(reasons, d.c.Unread...)
	if d.news.unenforced {
		reasons = append(reasons, d.news.policyless())
	}
	return (d.served || d.before && d.clock.Now()-d.began < statusGrace) && !d.placing.missing, reasons
}

// serving is what a rolling update waits for: this daemon has taken up its work, and the runtime is told where the network is.
func (d *daemon) serving() bool { return d.served && !d.placing.begun && !d.placing.missing }
