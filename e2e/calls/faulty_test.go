package calls

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

func TestFaulty(t *testing.T) {
	const fails = `{"cniVersion":"1.1.0","code":11,"msg":"try again later"}`
	for _, c := range []struct {
		says, name, faults, verb, stdin string
		stdout                          string // a part of it; empty: nothing is printed
		fails, ran                      bool
	}{
		{says: "no file", name: "ptp", verb: "ADD", stdout: "ADD", ran: true},
		{says: "another pod's", name: "ptp", faults: `[{"pod":"default/web-1","error":"x"}]`, verb: "ADD", stdout: "ADD", ran: true},
		{says: "fails before", name: "ptp", faults: `[{"error":"try again later","code":11}]`, verb: "ADD", stdout: fails, fails: true},
		{says: "fails after", name: "ptp", faults: `[{"error":"try again later","code":11,"after":true}]`, verb: "DEL", stdout: fails, fails: true, ran: true},
		{says: "stalls", name: "ptp", faults: `[{"stall":"1ms"}]`, verb: "ADD", stdout: "ADD", ran: true},
		{says: "stalls after", name: "ptp", faults: `[{"stall":"1ms","after":true}]`, verb: "ADD", stdout: "ADD", ran: true},
		{says: "bad faults", name: "ptp", faults: `?`, verb: "ADD", stdout: `"code":999`, fails: true},
		{says: "a member passes the result on", name: "enilab-faulty", verb: "ADD", stdin: `"prevResult":{"dns":{}}`, stdout: `{"dns":{}}`},
		{says: "a first member", name: "enilab-faulty", verb: "ADD", stdout: `{"cniVersion":"1.1.0"}`},
		{says: "a member's DEL", name: "enilab-faulty", verb: "DEL"},
		{says: "a member's STATUS", name: "enilab-faulty", verb: "STATUS"},
		{says: "a member's VERSION", name: "enilab-faulty", verb: "VERSION", stdout: `"supportedVersions":["0.3.1"`},
		{says: "a member fails", name: "enilab-faulty", faults: `[{"plugin":"enilab-faulty","verb":"DEL","error":"try again later","code":11}]`, verb: "DEL", stdout: fails, fails: true},
		{says: "a member's bad configuration", name: "enilab-faulty", verb: "ADD", stdin: `?`, stdout: `"code":999`, fails: true},
	} {
		t.Run(c.says, func(t *testing.T) {
			root := t.TempDir()
			link(t, root, "faults", c.name)
			link(t, root, "plugins", "ptp")
			if c.faults != "" {
				must.Do(t, os.WriteFile(filepath.Join(root, "faults", faultsFile), []byte(c.faults), 0o600))
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "faults", c.name))
			cmd.Env = append(os.Environ(), "CNI_COMMAND="+c.verb, "CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0",
				"CNI_PATH="+filepath.Join(root, "faults")+":"+filepath.Join(root, "plugins"))
			stdin := c.stdin
			if stdin != "" {
				stdin = "," + stdin
			}
			cmd.Stdin = strings.NewReader(`{"cniVersion":"1.1.0"` + stdin + `}`)
			out, err := cmd.Output()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.stdout) || c.stdout == "" && len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
			_, e := os.Stat(filepath.Join(root, "plugins", "ptp.ran"))
			if ran := e == nil; ran != c.ran {
				t.Errorf("the real plugin ran: %v", ran)
			}
		})
	}
}

// link makes this program the file of a plugin.
func link(t *testing.T, root, dir, name string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	must.Do(t, os.Symlink(self, filepath.Join(root, dir, name)))
}
