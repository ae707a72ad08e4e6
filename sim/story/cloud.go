package story

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Call tells of a mutation at EC2 and how it ended. Throttled ones are counted elsewhere.
func (s *Story) Call(at time.Duration, node int32, q *ec2.Request, r *ec2.Response) {
	id, result := string(q.ENI), "ok"
	switch {
	case r.Lost:
		result = "the answer is lost"
	case r.Code == "RequestLimitExceeded":
		return
	case r.Code != "":
		result = r.Code
	case r.ENI.ID != "":
		id = string(r.ENI.ID)
	}
	text := q.Action.String()
	if id != "" {
		text += " " + s.ENI(id)
	}
	s.Add(at, node, text+": "+result)
}
