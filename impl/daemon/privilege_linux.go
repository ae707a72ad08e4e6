package daemon

import (
	"os"

	"golang.org/x/sys/unix"
)

// lacking says what this process may not do and must; "" is nothing.
func lacking() string {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return "it cannot read its capabilities: " + err.Error()
	}
	if os.Geteuid() != 0 || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		return "it needs root and CAP_NET_ADMIN, in the host's network namespace; run it as the aws-node DaemonSet does (capabilities: NET_ADMIN, NET_RAW)"
	}
	return ""
}
