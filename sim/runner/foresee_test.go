package runner

import (
	"strings"
	"testing"
)

// What cannot strike, whatever happens, is refused before anything runs; what can is not.
func TestRefusesWhatCannotStrike(t *testing.T) {
	const head = "cluster nodes=2 type=m5.large subnet=10.0.10.0/24\nstart pods web 3 on node-1\n"
	for line, says := range map[string]string{
		"at 1s pod web-99 delete":                              "there is never a pod web-99: workload web is scaled to 3 at most (the last one is web-2)",
		"at 1s pod web-x delete":                               `no workload of pod "web-x"`,
		"at 1s pod web delete":                                 `no workload of pod "web"`,
		"at 1s ec2 unassign web-3":                             "there is never a pod web-3",
		"at 1s node-1 flush-routes table=77":                   "flush-routes table=77 strikes nobody: a m5.large has tables 254 and 2 to 3",
		"at 1s node-1 flush-routes table=4":                    "table=4 strikes nobody",
		`always "ec2 calls stay within the budget"`:            "cannot break: the cluster has no budget",
		"at 1s node-1 unhold":                                  "no line keeps the daemon down",
		"at 1s node-1 hold\nat 2s node-2 unhold":               "no line keeps the daemon down",
		"at 1s pod web-1 hang\nat 2s pod web-2 unhang":         "no line hangs a process of pod web-2",
		"at 1s node-1 socket cri=right":                        "no line has it be another",
		"at 1s node-1 upgrade to=2":                            "upgrade to=2 changes nothing",
		"at 1s ec2 detach device=0":                            "detach device=0 strikes nobody",
		"at 1s ec2 remove device=3":                            "remove device=3 strikes nobody",
		"at 1s ec2 lose any times=0":                           "times=0 strikes nobody",
		"at 1s ec2 deny any for=0s":                            "for=0s strikes nobody",
		"at 1s imds lag by=0s":                                 "by=0s strikes nobody",
		"at 1s ec2 skew by=5m":                                 "skew by=5m0s strikes nobody",
		"at 1s ec2 draw 7 faults=0":                            "faults=0 strikes nobody",
		"at 1s kube roll web 0":                                "roll web 0 strikes nobody",
		"at 1s kube create web 2":                              `workload "web" is made twice`,
		`never settles "it may"`:                               "never settles says nothing in a file that is not given time to settle",
		"at 1s pod web-99 delete\nevent \"x\"":                 "there is never a pod web-99", // a line that cannot be read makes no other mistake invisible
		"at 1s kube crate db 3\nat 2s pod web-99 delete":       "there is never a pod web-99",
		"at 1s pod web-4 delete\nat 2s kube scale web 5":       "",
		"at 1s node-* hold\nat 2s node-2 unhold":               "",
		"at 1s node-2 hold\nat 2s node-* unhold":               "",
		"at 1s node-1 flush-routes table=2":                    "",
		"at 1s node-1 flush-routes":                            "",
		"at 1s node-1 upgrade to=1\nat 2s node-1 upgrade to=2": "",
		"at 1s ec2 skew by=6m":                                 "",
		"at 1s ec2 unassign web-2":                             "",
	} {
		_, err := Load(Sim(), "x.scn", []byte(head+line+"\n"))
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", line, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: expected %q, found %v", line, says, err)
		}
	}
	// A start line that cannot be read may have made what another line is about: only the start line is told.
	if _, err := Load(Sim(), "x.scn", []byte("cluster nodes=1\nstart pods web on node-1\nat 1s pod web-0 delete\n")); err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("found %v", err)
	}
}
