package ec2

import "time"

// Travel says how long a request takes to arrive and how long its answer takes back. It draws from the
// caller's stream and uses up Slow faults, so call it once per request.
func (c *Cloud) Travel(r *Request) (there, back time.Duration) {
	from := c.instanceIndex(r.Caller)
	a := r.Action
	if !a.known() {
		a = AnyAction
	}
	s := c.stream(from)
	total := s.draw(c.cfg.Latency.Call[a])
	there = total/4 + scale(total/2, int64(s.next()>>44)) // between a quarter and three quarters
	back = total - there
	if len(c.faults) > 0 {
		there += c.slow(Slow, r)
		back += c.slow(SlowAnswer, r)
	}
	return there, back
}

// Serve executes a request that arrives now, as one step: throttling first, then validation, then the
// effect. There is no partial effect: a failed request has changed nothing.
func (c *Cloud) Serve(now time.Duration, r *Request) Response {
	c.Advance(now)
	from := c.instanceIndex(r.Caller)
	if len(c.faults) > 0 {
		return c.serveFaulty(from, r)
	}
	p := c.answer(from, r)
	c.record(from, r.Action, &p)
	return p
}

// answer throttles and executes.
func (c *Cloud) answer(from int32, r *Request) Response {
	if !r.Action.known() {
		if r.Unmodelled != "" {
			return failure(codeNotModelled, "The action "+r.Unmodelled+" is not modelled.")
		}
		return failure(codeInvalidAction, "The action is not valid for this web service.")
	}
	if c.throttled(r) {
		return failure(codeThrottled, "Request limit exceeded.")
	}
	if r.DryRun {
		return failure(codeDryRun, "Request would have succeeded, but DryRun flag is set.")
	}
	return c.execute(from, r)
}

// execute validates a request and does it.
func (c *Cloud) execute(from int32, r *Request) Response {
	switch r.Action {
	case CreateNetworkInterface:
		return c.create(from, r)
	case AttachNetworkInterface:
		return c.attach(from, r)
	case ModifyNetworkInterfaceAttribute:
		return c.modify(from, r)
	case DetachNetworkInterface:
		return c.detach(from, r)
	case DeleteNetworkInterface:
		return c.delete(from, r)
	case AssignPrivateIpAddresses:
		return c.assign(from, r)
	case UnassignPrivateIpAddresses:
		return c.unassign(from, r)
	case AssignIpv6Addresses:
		return c.assign6(from, r)
	case UnassignIpv6Addresses:
		return c.unassign6(from, r)
	case DescribeNetworkInterfaces:
		return c.describeENIs(from, r)
	case DescribeSubnets:
		return c.describeSubnets(from, r)
	case CreateTags:
		return c.createTags(from, r)
	case DescribeInstances:
		return c.describeInstances(from, r)
	case DescribeInstanceTypes:
		return describeTypes(r)
	case DeleteTags:
		return c.deleteTags(from, r)
	case DescribeVpcs:
		return c.describeVPCs(r)
	case DescribeSecurityGroups:
		return c.describeGroups(r)
	case RunInstances:
		return c.runInstances(from, r)
	case TerminateInstances:
		return c.terminate(from, r)
	case RebootInstances:
		return c.reboot(from, r)
	}
	return c.executeLater(from, r)
}

// executeLater is execute for the actions behind RebootInstances.
func (c *Cloud) executeLater(from int32, r *Request) Response {
	switch r.Action {
	case DescribeTags:
		return c.describeTags(from, r)
	case DescribeAvailabilityZones:
		return c.describeZones(r)
	case DescribeRegions:
		return c.describeRegions(r)
	case DescribeInstanceStatus:
		return c.describeStatus(from, r)
	case GetSubnetCidrReservations:
		return c.subnetReservations(r)
	case DescribeNetworkInterfaceAttribute:
		return c.describeENIAttribute(from, r)
	case DescribeVpcAttribute:
		if len(r.VPCs) != 1 {
			return missing("VpcId")
		}
		return c.describeVPCs(r)
	case DescribeAccountAttributes:
		return describeAccount(r)
	case DescribeAddresses:
		return describeAddresses(r)
	case DescribeRouteTables:
		return c.describeRouteTables(r)
	case DeleteSubnet:
		return c.deleteSubnet(r)
	case StopInstances:
		return c.stop(from, r)
	case StartInstances:
		return c.startAgain(from, r)
	}
	return failure(codeInvalidAction, "The action is not valid for this web service.")
}
