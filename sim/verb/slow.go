package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
	"time"
)

// AnyDelay is how long a request may take for any CNI: AWS's clients ask again after ten seconds.
const AnyDelay = 8 * time.Second

var slow = &Verb{
	Name: "slow", On: onEC2,
	Params: []Param{call("request"), named("by", Duration, "5s", "how much"), howMany(),
		choice("way", "there", "before EC2 executes it, or after", "there", "back"), whose()},
	Doc: "the next such requests take that much longer",
	Strike: func(t *Target) Strike {
		if t.Text("way") == "back" {
			return t.fault(ec2.Fault{Kind: ec2.SlowAnswer, Slow: t.Duration("by")})
		}
		return t.fault(ec2.Fault{Kind: ec2.Slow, Slow: t.Duration("by")})
	},
	AnyCNI: Survival{Why: "below the ten seconds after which AWS's own clients ask again, and not the answer of a request that makes an ENI",
		Beyond: func(a *Act) bool { return a.Duration("by") > AnyDelay || a.makesENI() && a.Text("way") == "back" }},
	Needs: Needs{Cloud: true},
}
