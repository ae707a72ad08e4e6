package ec2

import (
	"fmt"
	"testing"
	"time"
)

// An instance is initializing for the minute after it began to run, then ok; what does not run is shown to who asks for all.
func TestInstanceStatus(t *testing.T) {
	w := newWorld(t)
	old := w.launch("m5.large", far)
	i := w.do(runOf(plenty, 1, 1)).Instances[0].ID
	show := func(r Request) (out []string) {
		r.Action = DescribeInstanceStatus
		for _, s := range w.do(r).Statuses {
			name := "young"
			if s.Instance == old {
				name = "old"
			}
			out = append(out, fmt.Sprintln(name, s.Zone.ID, s.State, s.Status))
		}
		return out
	}
	check := func(when string, r Request, want ...string) {
		t.Helper()
		for k := range want {
			want[k] += "\n"
		}
		if got := show(r); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: found %q, expected %q", when, got, want)
		}
	}
	check("pending", Request{}, "old usw2-az2 running ok")
	check("pending, by ID", Request{Instances: []InstanceID{i}})
	check("pending, all", Request{AllStates: true}, "old usw2-az2 running ok", "young usw2-az1 pending not-applicable")
	w.wait(8 * time.Second)
	check("runs", Request{Instances: []InstanceID{i, old}}, "young usw2-az1 running initializing", "old usw2-az2 running ok")
	w.wait(time.Minute - 1)
	check("almost a minute later", Request{Instance: i}, "young usw2-az1 running initializing")
	w.wait(1)
	check("a minute later", Request{Instance: i}, "young usw2-az1 running ok")
	w.do(Request{Action: TerminateInstances, Instances: []InstanceID{i}})
	check("ends", Request{AllStates: true, Instance: i}, "young usw2-az1 shutting-down not-applicable")
	w.wait(20 * time.Second)
	check("ended", Request{AllStates: true, Instance: i}, "young usw2-az1 terminated not-applicable")
	check("without it", Request{}, "old usw2-az2 running ok")
	w.wait(time.Hour)
	w.refused(Request{Action: DescribeInstanceStatus, Instances: []InstanceID{old, i}}, "InvalidInstanceID.NotFound")
	w.refused(Request{Action: DescribeInstanceStatus, Instance: "node-1"}, "InvalidInstanceID.Malformed")
}
