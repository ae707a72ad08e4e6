package ec2

import "time"

// maxTokens bounds a bucket's capacity and refill so that the arithmetic below cannot overflow.
const maxTokens = 1 << 30

// token is one token; levels are kept in billionths so that a refill of r per second is exactly r per
// nanosecond elapsed, and no rounding ever drifts.
const token = int64(time.Second)

// level is a bucket's state; what it may hold is in the Config.
type level struct {
	spent int64 // how far below full, in billionths of a token: the zero value is a full bucket
	at    time.Duration
}

// take draws one token and says whether there was one. A refused call costs nothing.
func (l *level) take(now time.Duration, b Bucket) bool { return l.takeMany(now, b, 1) }

// takeMany draws n tokens at once, or none.
func (l *level) takeMany(now time.Duration, b Bucket, n int) bool {
	l.refill(now, b)
	if int64(n) > (int64(b.Capacity)*token-l.spent)/token {
		return false // compared before it is multiplied: n is the caller's
	}
	l.spent += int64(n) * token
	return true
}

// drain empties the bucket.
func (l *level) drain(now time.Duration, b Bucket) {
	l.spent, l.at = int64(b.Capacity)*token, now
}

func (l *level) refill(now time.Duration, b Bucket) {
	elapsed := int64(now - l.at)
	l.at = now
	if l.spent == 0 || b.RefillPerSecond == 0 {
		return
	}
	if elapsed > l.spent/int64(b.RefillPerSecond) {
		l.spent = 0 // compared before it is multiplied: elapsed may be years
		return
	}
	l.spent -= elapsed * int64(b.RefillPerSecond)
}

// bucket is the level that a request draws from, and its size.
func (c *Cloud) bucket(r *Request) (*level, Bucket) {
	if r.Action.describes() && !r.Paged && r.unfiltered() {
		return &c.unfiltered[r.Action], c.cfg.Throttle.Unfiltered[r.Action]
	}
	return &c.buckets[r.Action], c.cfg.Throttle.Action[r.Action]
}

// throttled draws what a request costs and says whether it cannot pay. The bucket of requests comes first, and a call that the bucket
// of resources then refuses has paid there: the document leaves it open, and this is the stricter reading. A dry run changes no
// resource.
func (c *Cloud) throttled(r *Request) bool {
	l, b := c.bucket(r)
	if !l.take(c.now, b) {
		return true
	}
	n := r.resources()
	return n > 0 && !r.DryRun && !c.resources[r.Action].takeMany(c.now, c.cfg.Throttle.Resources[r.Action], n)
}

// resources is how many resources a call is about, for those that are limited by that.
func (r *Request) resources() int {
	switch r.Action {
	case RunInstances:
		return r.MaxCount
	case TerminateInstances, StopInstances, StartInstances:
		return len(r.Instances)
	}
	return 0
}

// unfiltered says whether a Describe asks for everything at once. A filter counts for all of them, the model's own for interfaces as
// well as what a transport that filters by itself puts there.
func (r *Request) unfiltered() bool {
	if r.FilterStatus != "" || r.FilterTagKey != "" || r.FilterInstance != "" || r.FilterDescription != "" {
		return false
	}
	switch r.Action {
	case DescribeSubnets:
		return r.Subnet == "" && len(r.Subnets) == 0
	case DescribeInstances, DescribeInstanceStatus:
		return r.Instance == "" && len(r.Instances) == 0
	case DescribeInstanceTypes:
		return len(r.Types) == 0
	case DescribeVpcs, DescribeVpcAttribute:
		return len(r.VPCs) == 0
	case DescribeSecurityGroups:
		return len(r.SecurityGroups) == 0
	case DescribeAvailabilityZones:
		return len(r.Zones)+len(r.ZoneIDs) == 0
	case DescribeRegions:
		return len(r.Regions) == 0
	case GetSubnetCidrReservations, DescribeNetworkInterfaceAttribute:
		return false
	case DescribeAccountAttributes:
		return len(r.Attributes) == 0
	case DescribeAddresses:
		return len(r.PublicIPs)+len(r.Allocations) == 0
	case DescribeRouteTables:
		return len(r.RouteTables) == 0
	}
	return len(r.ENIs) == 0
}
