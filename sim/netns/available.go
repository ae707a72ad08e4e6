package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/enilab/enilab/sim/vpc"
)

// Available says what this machine lacks for a laboratory; nil is nothing.
func Available() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the laboratory needs Linux: network namespaces, veth and nftables (this is %s)", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the laboratory needs root, for namespaces of its own: run it with sudo")
	}
	ns, err := vpc.NewNamespace()
	if err != nil {
		return fmt.Errorf("the laboratory needs network namespaces, and making one failed: %w (in a container: run it privileged)", err)
	}
	return ns.Close()
}
