package deploy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// mount is a folder of the host and where a container sees it.
type mount struct {
	name, host, at string
	kind           corev1.HostPathType
	readOnly       bool
}

// The folders. amazon-vpc-cni-k8s mounts the first four at these very places; its /run/xtables.lock is not among them, for no iptables
// is called.
var (
	binDir  = mount{name: "cni-bin-dir", host: "/opt/cni/bin", at: "/host/opt/cni/bin", kind: corev1.HostPathDirectoryOrCreate}
	confDir = mount{name: "cni-net-dir", host: "/etc/cni/net.d", at: "/host/etc/cni/net.d", kind: corev1.HostPathDirectoryOrCreate}
	logDir  = mount{name: "log-dir", host: "/var/log/aws-routed-eni", at: "/host/var/log/aws-routed-eni", kind: corev1.HostPathDirectoryOrCreate}
	runDir  = mount{name: "run-dir", host: "/var/run/aws-node", at: "/var/run/aws-node", kind: corev1.HostPathDirectoryOrCreate}
	libDir  = mount{name: "lib-dir", host: "/var/lib/aws-node", at: "/var/lib/aws-node", kind: corev1.HostPathDirectoryOrCreate}
)

// runtimeDir is the folder and not the socket in it: a runtime that is started again makes a new socket, and a mount of the old one
// would lead nowhere for ever. What containerd has mounted below it, the roots of containers, comes along, and goes again when containerd
// removes the folder that it was mounted on (since Linux 3.19), so no ended container is kept. Where the folder is missing another runtime
// runs: it is made, the daemon reports that no runtime answers there, and serves from its record.
func (o *Options) runtimeDir() mount {
	return mount{name: "runtime-dir", host: o.RuntimeDir, at: o.RuntimeDir, kind: corev1.HostPathDirectoryOrCreate, readOnly: true}
}

func (o *Options) daemonMounts() []mount {
	out := []mount{confDir, logDir, runDir, libDir}
	if s, _ := o.settings(); s.Runtime != "" {
		out = append(out, o.runtimeDir())
	}
	for i, path := range o.ExtraVolumes {
		out = append(out, mount{name: fmt.Sprintf("extra-%d", i), host: path, at: path})
	}
	return out
}

// initMounts: the init step reads what is on record where metadata does not answer.
func (o *Options) initMounts() []mount { return []mount{binDir, runDir} }

// volumes are all that the containers mount, or why they cannot.
func (o *Options) volumes() (out []corev1.Volume, err error) {
	at := map[string]bool{}
	for _, m := range append([]mount{binDir}, o.daemonMounts()...) { // which are the others of the init step, too
		if at[m.at] {
			return nil, fmt.Errorf("deploy: two volumes are mounted at %s", m.at)
		}
		at[m.at] = true
		source := &corev1.HostPathVolumeSource{Path: m.host}
		if m.kind != corev1.HostPathUnset {
			source.Type = &m.kind
		}
		out = append(out, corev1.Volume{Name: m.name, VolumeSource: corev1.VolumeSource{HostPath: source}})
	}
	return out, nil
}

func volumeMounts(mounts []mount) (out []corev1.VolumeMount) {
	for _, m := range mounts {
		out = append(out, corev1.VolumeMount{Name: m.name, MountPath: m.at, ReadOnly: m.readOnly})
	}
	return out
}
