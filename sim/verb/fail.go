package verb

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var fail = &Verb{
	Name: "fail", On: onEC2,
	Params: []Param{call("request"), bare("code", Word, "error code"), howMany(),
		choice("after", "dropped", "whether EC2 executes it all the same", "dropped", "executed"), whose()},
	Doc: "the next such requests fail with that code",
	Strike: func(t *Target) Strike {
		return t.fault(ec2.Fault{Kind: ec2.Fail, Code: t.Text("code"), Executed: t.Text("after") == "executed"})
	},
	Draw:    &Draw{Weight: 4, Draw: drawFail},
	DrawAny: &Draw{Weight: 4, Draw: drawFail},
	Owe: func(o *draw.Owing, a *Act) {
		if a.Text("code") == attachLimit {
			o.Limits += a.Int("times")
		}
	},
}

func drawFail(p *draw.Plan, at time.Duration) {
	call := p.Call()
	code := draw.Pick(&p.Source, slices.Concat(afterTheDeed, refusals[call], refused)...)
	most := MostRefusals
	if code == attachLimit {
		most = MostLimits
	}
	times, whose := p.Times(most), p.Whose()
	if code == attachLimit {
		if p.Limited {
			return
		}
		p.Limited = true
	}
	after := ""
	if slices.Contains(afterTheDeed, code) && p.Chance(30) {
		after = " after=executed"
	}
	p.Write(at, "ec2 fail %s %s%s%s%s", call, code, times, after, whose)
}

// attachLimit is how EC2 refuses an attach as one too many, which a node believes for twice as long each time: after
// four in a row the next try is a quarter of an hour after the first, after seven it is two hours.
const attachLimit = "AttachmentLimitExceeded"

// MostLimits is how often in a row that is so: after one more the next try may be later than pods are waited for.
const MostLimits = MostRefusals - 1

// afterTheDeed are error codes of EC2's that any call may meet, also one that was carried out.
var afterTheDeed = []string{"InternalError", "Unavailable", "RequestLimitExceeded"}

// refused are error codes for callers that are too fast, or whose credentials or clock are wrong for a while.
var refused = []string{"Throttling", "BandwidthLimitExceeded", "UnauthorizedOperation", "AuthFailure",
	"RequestExpired", "ExpiredToken", "Blocked"}

// MostRefusals is how often in a row a call is refused.
const MostRefusals = 4

// refusals are error codes that a call may meet although nothing is wrong with it.
var refusals = map[string][]string{
	"CreateNetworkInterface":   {"InsufficientFreeAddressesInSubnet", "NetworkInterfaceLimitExceeded"},
	"AttachNetworkInterface":   {attachLimit},
	"AssignPrivateIpAddresses": {"InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded"},
	"DeleteNetworkInterface":   {"InvalidNetworkInterface.InUse"},
}
