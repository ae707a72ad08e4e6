package cli

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// leave has another process remove a cluster, for Docker takes longer than a user waits after an interruption. That
// process begins when this one has ended, which its standard input tells it. It is false when there is no such
// process.
func (l *cli) leave(cluster string) bool {
	if l.left != nil {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	r, w, err := os.Pipe()
	if err != nil {
		return false
	}
	defer r.Close()
	c := exec.Command(self, "down", "--name", cluster, "--after")
	c.Stdin = r
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		_ = w.Close()
		return false
	}
	l.left = w // not closed: it ends with this process
	fmt.Fprintf(l.err, "the cluster %s is being removed by process %d; enilab down --name %[1]s waits for it\n", cluster, c.Process.Pid)
	return true
}
