package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	d.health.began = d.clock.Now()
	d.health.sayAgain = d.health.began + reasonsPause
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
	d.after(d.health.began+policiesFirst, d.news.policies)
	d.health.before = exists(filepath.Join(d.c.RunDir, servedFile))
	d.health.wasReady.Store(d.health.before)
	in := ipam.Start{Boot: bootID(), Seed: seed(), Daemon: d.c.self(), Version: d.c.Version, Wall: clock.Wall(), Cluster: d.c.Cluster, Settings: d.c.Settings, Booted: d.c.Booted}
	in.Rebooted = rebooted(d.c.RunDir, d.c.Checkpoint, in.Boot)
	if err := os.MkdirAll(d.c.LibDir, 0o755); err != nil {
		d.log.Warn("the folder of EC2 intents cannot be made; no ENI can be made or given back", "err", err)
	}
	d.stores.read(ipam.RunStore, &file{path: d.c.Checkpoint, kind: ipam.RunStore, version: d.c.Version, wall: in.Wall}, &in)
	d.stores.read(ipam.LibStore, &file{path: filepath.Join(d.c.LibDir, libFile), kind: ipam.LibStore, version: d.c.Version, wall: in.Wall}, &in)
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
	d.kernel.watchEvents()
	d.watchNode()
	d.intents.begin()
	return nil
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
