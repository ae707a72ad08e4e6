package ec2

import (
	"slices"
	"time"
)

// drawnCodes are what a drawn Fail fault answers: codes that a caller is to live with at any call.
var drawnCodes = [...]string{codeInternal, codeUnavailable, codeThrottled, codeUnauthorized, codeAuthFailure, codeExpired, codeValue,
	codeENINotFound, codeSubnetFull, "InsufficientInstanceCapacity", "InsufficientCidrBlocks", codeAddressLimit, codeENIQuota}

// afterTheDeed are those of them that EC2 answers after it has done the work, too.
var afterTheDeed = [...]string{codeInternal, codeUnavailable, codeThrottled}

// endOfDrawn is one more than the last kind that is drawn: a role is the account's, and no accident.
const endOfDrawn = AllowOnly

// endOfDrawnActions is one more than the last action that is drawn: what came to be modelled later would change what a
// seed means.
const endOfDrawnActions = RebootInstances + 1

// DrawFault is a fault that a seed picks: of any kind, on one of the nodes or (one in four, and without nodes) everybody, over within two
// minutes of now. The same arguments give the same fault. Its text says what it is.
func DrawFault(seed uint64, now time.Duration, nodes []InstanceID) Fault {
	s := stream(seed)
	f := Fault{Kind: Lose + FaultKind(s.below(int(endOfDrawn-Lose))), Until: max(now, 0) + time.Second + s.upTo(119*time.Second)}
	if s.below(4) > 0 && len(nodes) > 0 {
		f.Instance = nodes[s.below(len(nodes))]
	}
	for _, key := range f.Kind.keys() {
		switch key {
		case "action":
			if s.below(2) == 0 {
				f.Action = CreateNetworkInterface + Action(s.below(int(endOfDrawnActions-CreateNetworkInterface)))
			}
		case "code":
			if f.Kind == Fail {
				f.Code = drawnCodes[s.below(len(drawnCodes))]
			}
		case "times":
			f.Times = 1 + s.below(5)
		case "by":
			f.drawBy(&s)
		case "leave":
			f.Leave = s.below(9)
		case "after":
			f.Executed = slices.Contains(afterTheDeed[:], f.Code) && s.below(2) == 0
		}
	}
	if f.Kind.byThirdParty() && f.Action == AnyAction {
		f.Until = 0 // it is done at once
	}
	return f
}

// drawBy draws a delay of up to half a minute, or up to an hour that a clock is wrong.
func (f *Fault) drawBy(s *stream) {
	if f.Kind != ClockSkew {
		*f.by() = time.Millisecond + s.upTo(30*time.Second)
		return
	}
	f.By = time.Minute + s.upTo(time.Hour)
	if s.below(2) == 0 {
		f.By = -f.By
	}
}

// below draws a number from 0 to n−1.
func (s *stream) below(n int) int { return int(s.next() % uint64(n)) }

// upTo draws whole milliseconds, evenly.
func (s *stream) upTo(d time.Duration) time.Duration {
	return time.Duration(s.below(int(d/time.Millisecond))) * time.Millisecond
}
