package netns

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/systems"
)

// resolve finds every system that a cluster is upgraded to. One that is played, or upgraded to, makes a world in real time and without books.
func (p *Parts) resolve(c *sim.Cluster) error {
	p.others = map[string]*systems.System{}
	for _, name := range c.Systems {
		if p.Find == nil {
			return fmt.Errorf("the laboratory knows no systems: Parts.Find is nil, and the scenario upgrades to %s", name)
		}
		s, err := p.Find(name)
		if err != nil {
			return err
		}
		p.others[name] = s
	}
	if p.System == nil && len(p.others) > 0 {
		s, err := p.own()
		if err != nil {
			return err
		}
		p.System = s
	}
	if p.System != nil {
		p.RealTime, p.WithoutBooks = true, true
	}
	return nil
}

// all are the systems of the world, if it has any.
func (p *Parts) all() (out []*systems.System) {
	if p.System != nil {
		out = append(out, p.System)
	}
	return slices.AppendSeq(out, maps.Values(p.others))
}

// without are the sources that the laboratory lacks: of a daemon without books only the outside is known.
func (p *Parts) without() judge.Source {
	if p.WithoutBooks {
		return judge.Books
	}
	return 0
}

// own is our daemon and plugin as a system like any other, which our own description says.
func (p *Parts) own() (*systems.System, error) {
	return systems.Find(p.Context, "enilab@0.0.0="+filepath.Dir(p.Ipamd), systems.Options{})
}

// tokensOptional says whether metadata answers requests without a token: as the cluster says, or else where a system asks as it was before IMDSv2.
func (w *World) tokensOptional() bool {
	if w.Cluster.Tokens != "" {
		return w.Cluster.Tokens == "optional"
	}
	return slices.ContainsFunc(w.parts.all(), func(s *systems.System) bool { return s.Metadata.Tokens == "optional" })
}

// capabilityNumbers are the kernel's of names such as CAP_NET_ADMIN; nil is all.
func capabilityNumbers(names []string) ([]int, error) {
	if names == nil {
		return nil, nil
	}
	out := []int{}
	for _, name := range names {
		i := slices.Index(capabilities, strings.TrimPrefix(name, "CAP_"))
		if i < 0 {
			return nil, fmt.Errorf("unknown capability %s: capabilities(7) lists them", name)
		}
		out = append(out, i)
	}
	return out, nil
}

// capabilities are the kernel's, in the order of their numbers (capabilities(7)).
var capabilities = strings.Fields("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE " +
	"NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN " +
	"SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE " +
	"MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE")
