package netns_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
)

// TestRegistryOfSomebodyElse: the temporary folder is everybody's, and root must not end the processes that somebody wrote down there.
func TestRegistryOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: to give a folder to somebody else")
	}
	for name, lay := range map[string]func(folder string) error{
		"another's":    func(folder string) error { return os.Chown(folder, nobody, nobody) },
		"for all":      func(folder string) error { return os.Chmod(folder, 0o777) },
		"another file": func(folder string) error { return os.Chown(filepath.Join(folder, "netns-1.json"), nobody, nobody) },
		"a link": func(folder string) error {
			if err := os.Rename(folder, folder+"-real"); err != nil {
				return err
			}
			return os.Symlink(folder+"-real", folder)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			victim := exec.Command("sleep", "600")
			must.Do(t, victim.Start())
			defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
			stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", victim.Process.Pid)))(t)
			folder := filepath.Join(os.TempDir(), "enilab-labs")
			must.Do(t, os.Mkdir(folder, 0o700))
			entry := fmt.Sprintf(`{"pid":%d,"begun":%s,"nodes":{"node-1":1}}`, victim.Process.Pid, strings.Fields(string(stat))[21])
			must.Do(t, os.WriteFile(filepath.Join(folder, "netns-1.json"), []byte(entry), 0o600))
			must.Do(t, lay(folder))
			if list, err := netns.Labs(); err == nil || len(list) > 0 {
				t.Errorf("labs: %v, %v; expected none, and why", list, err)
			}
			if ended, dead, err := netns.Clean(); err == nil || !strings.Contains(err.Error(), folder) || ended+dead > 0 {
				t.Errorf("clean: %d ended, %d dead, %v; expected that it does nothing, and says why", ended, dead, err)
			}
		})
	}
}

// TestCleanNamesWhatItEnds: of several laboratories, those are ended that are named, and the only one needs no name.
func TestCleanNamesWhatItEnds(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := filepath.Join(os.TempDir(), "enilab-labs")
	must.Do(t, os.Mkdir(folder, 0o700))
	var pids []int
	for i := range 3 {
		c := exec.Command("sleep", "600")
		must.Do(t, c.Start())
		done := make(chan struct{})
		go func() { defer close(done); _ = c.Wait() }()
		t.Cleanup(func() { _ = c.Process.Kill(); <-done })
		pid := c.Process.Pid
		stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(t)
		entry := fmt.Sprintf(`{"pid":%d,"begun":%s,"nodes":{"node-1":1}}`, pid, strings.Fields(string(stat))[21])
		must.Do(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("netns-%d.json", i)), []byte(entry), 0o600))
		pids = append(pids, pid)
	}
	for _, c := range []struct {
		name  []int
		ended int
		says  string
		left  int
	}{
		{nil, 0, "3 laboratories run", 3},
		{[]int{1}, 0, "process 1 has no laboratory", 3},
		{pids[:2], 2, "", 1},
		{nil, 1, "", 0},
	} {
		ended, dead, err := netns.Clean(c.name...)
		if ended != c.ended || dead != 0 || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("clean %v: %d ended, %d dead, %v; expected %d, and %q", c.name, ended, dead, err, c.ended, c.says)
		}
		if list, err := netns.Labs(); err != nil || len(list) != c.left {
			t.Errorf("after clean %v: %d laboratories (%v), expected %d", c.name, len(list), err, c.left)
		}
	}
}
