package ipc

import (
	"net"
	"syscall"
)

// credentials are those of the process that connected (unix(7), SO_PEERCRED).
func credentials(c *net.UnixConn) (pid int, uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *syscall.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) {
		cred, got = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, 0, err
	}
	if got != nil {
		return 0, 0, got
	}
	return int(cred.Pid), cred.Uid, nil
}
