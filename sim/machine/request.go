package machine

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/models"
)

// Sender makes a machine's requests travel to EC2 and back. Its functions are called in the world's loop.
type Sender struct {
	EC2    *ec2.Cloud
	Now    func() time.Duration
	After  func(d time.Duration, run func())
	Trap   func(a ec2.Action, after bool) bool // the caller dies now, before EC2 has the request or after
	Asked  func(r *ec2.Request)                // EC2 is about to execute it
	Served func(r *ec2.Request, answer *ec2.Response)
}

// Send is a request that has left its machine. answer is called once, with nil when the answer never comes.
func (s *Sender) Send(r *ec2.Request, answer func(*ec2.Response)) {
	if s.Trap(r.Action, false) {
		answer(nil)
		return
	}
	there, back := s.EC2.Travel(r)
	s.After(there, func() {
		s.Asked(r)
		resp := s.EC2.Serve(s.Now(), r)
		s.Served(r, &resp)
		switch {
		case resp.Code == "" && s.Trap(r.Action, true):
			answer(nil)
		case resp.Lost:
			s.After(models.SDKTimeout, func() { answer(nil) })
		default:
			s.After(back, func() { answer(&resp) })
		}
	})
}
