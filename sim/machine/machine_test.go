package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/models"
)

// What is due comes in the order of its instants, and of its arrival where these are equal.
func TestQueue(t *testing.T) {
	var q Queue
	var found []string
	for _, d := range []struct {
		at   time.Duration
		name string
	}{{2, "c"}, {1, "a"}, {2, "d"}, {1, "b"}} {
		q.Add(d.at, func() { found = append(found, d.name) })
	}
	for q.Next() != models.Never {
		q.Take()()
	}
	if expected := []string{"a", "b", "c", "d"}; !slices.Equal(found, expected) {
		t.Errorf("expected %v, found %v", expected, found)
	}
}

// The first name is taken that is free: a gap that a detached ENI has left, too.
func TestLinkNames(t *testing.T) {
	l := Links{"02:00:00:00:00:01": "eth0", "02:00:00:00:00:03": "eth2"}
	if name := l.free(); name != "eth1" {
		t.Errorf("expected eth1, found %s", name)
	}
}

// A request that is trapped before EC2 has it is not executed; one that is trapped after it is; neither is answered.
func TestSendTraps(t *testing.T) {
	for _, after := range []bool{false, true} {
		var served, asked, answers int
		var q Queue
		s := Sender{EC2: ec2.New(ec2.Config{}, 1), Now: func() time.Duration { return 0 },
			After:  func(d time.Duration, run func()) { q.Add(d, run) },
			Trap:   func(_ ec2.Action, now bool) bool { return now == after },
			Asked:  func(*ec2.Request) { asked++ },
			Served: func(_ *ec2.Request, r *ec2.Response) { served++; r.Code = "" }}
		s.Send(&ec2.Request{Action: ec2.DescribeNetworkInterfaces}, func(r *ec2.Response) {
			if answers++; r != nil {
				t.Errorf("trapped after %v: expected no answer, found %+v", after, r)
			}
		})
		for q.Next() != models.Never {
			q.Take()()
		}
		executed := 0
		if after {
			executed = 1
		}
		if asked != executed || served != executed || answers != 1 {
			t.Errorf("trapped after %v: EC2 was asked %d times and has served %d, expected %d; the caller was called %d times, expected once", after, asked, served, executed, answers)
		}
	}
}
