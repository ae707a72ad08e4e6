package plugin_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// TestUnprintableResultIsGivenBack: the runtime will never know of the address, and calls DEL only if it likes.
func TestUnprintableResultIsGivenBack(t *testing.T) {
	n := newNode(t)
	ns := newNamespace(t)
	cmd := n.command(of("ADD", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(ns))))
	full := must.Get(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	cmd.Stdout = full
	must.Do(t, startIn(n.host, cmd))
	late := time.AfterFunc(moment, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err == nil {
		t.Error("the result could not be printed, and the ADD succeeded")
	}
	verbs := ""
	for _, r := range n.daemon.requests() {
		verbs += r.Verb + " "
	}
	if n.daemon.holds() != 0 {
		t.Errorf("the address stays assigned; the daemon was asked %s", verbs)
	}
	if verbs != "add del " {
		t.Errorf("the daemon was asked %q, expected an ADD and its DEL", verbs)
	}
}
