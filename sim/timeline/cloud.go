package timeline

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Call tells of a mutation at EC2 and how it ended. Throttled ones are counted elsewhere.
func (s *Timeline) Call(at time.Duration, node int32, q *ec2.Request, r *ec2.Response) {
	id, result := string(q.ENI), ": ok"
	if id == "" && r.Code == "" {
		id = string(r.ENI.ID)
	}
	switch {
	case r.Code == "RequestLimitExceeded":
		return
	case r.Code != "":
		result = " refused: " + r.Code
	case q.Action == ec2.CreateNetworkInterface && id != "":
		s.enis[s.index(id)].created = true
	}
	if r.Lost {
		result = ": the answer is lost"
	}
	text := q.Action.String()
	if id != "" {
		text += " " + s.ENI(id)
	}
	s.Add(at, node, text+result)
}
