package netns

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
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
		p.System = p.own()
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
	for _, s := range p.others {
		out = append(out, s)
	}
	return out
}

// own is our daemon and plugin as a system like any other: heard of by its socket alone, with what production is given.
func (p *Parts) own() *systems.System {
	return &systems.System{Name: "enilab", Version: "0.0.0", Folder: filepath.Dir(p.Ipamd),
		Files:    []systems.File{{From: filepath.Base(p.Ipamd), To: "/app/ipamd"}, {From: filepath.Base(p.Plugin), To: "/opt/cni/bin/aws-cni"}},
		Conflist: systems.Text{Name: conflist.Name, Words: string(conflist.Make(conflist.Options{}))}, Plugins: []string{"aws-cni"},
		Daemon: &systems.Daemon{Argv: []string{"/app/ipamd"}, Capabilities: []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}, Settings: ipam.Variables(),
			Environment: map[string]string{"CLUSTER_NAME": "${CLUSTER}", "MY_NODE_NAME": "${NODE}", "MY_POD_NAME": "${POD}", "MY_POD_NAMESPACE": "${NAMESPACE}",
				"AWS_REGION": "${REGION}", "AWS_ENDPOINT_URL_EC2": "${EC2_URL}", "CLUSTER_ENDPOINT": "${KUBERNETES_URL}",
				"ENILAB_RUNTIME_SOCKET": "${RUNTIME_SOCKET}", "HOST_CNI_BIN_PATH": "none", "HOST_CNI_CONFDIR_PATH": "none"},
			Init: []systems.Command{{Argv: []string{"/app/ipamd", "init"}, Environment: map[string]string{"AWS_REGION": "${REGION}", "HOST_CNI_BIN_PATH": "none",
				"HOST_CNI_CONFDIR_PATH": "none"}, Within: initLimit}},
			Serves: systems.Serves{Unix: ipc.Socket, Within: judge.Catalogue()[judge.I16-1].Bound}, Stop: systems.Stop{Signal: "TERM", Grace: 10 * time.Second}},
		Runtime: systems.Runtime{API: "cri", Socket: criSocket}, Metadata: systems.Metadata{Tokens: "required"}, EC2: systems.EC2{By: "endpoint"},
		Kubernetes: systems.Kubernetes{By: "url"}}
}

// tokensOptional says whether a system asks metadata as it was before IMDSv2.
func (p *Parts) tokensOptional() bool {
	return slices.ContainsFunc(p.all(), func(s *systems.System) bool { return s.Metadata.Tokens == "optional" })
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
