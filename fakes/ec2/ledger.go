package ec2

// Count is how calls ended. Every call is in exactly one of OK, Throttled, Failed and Lost.
type Count struct{ Total, OK, Throttled, Failed, Lost int }

type outcome uint8

const (
	callOK outcome = iota
	callThrottled
	callFailed
	callLost // the answer never reached the caller, whatever it was
	outcomes
)

// tally counts the calls of one action.
type tally [outcomes]uint32

func (t tally) count() Count {
	n := Count{OK: int(t[callOK]), Throttled: int(t[callThrottled]), Failed: int(t[callFailed]), Lost: int(t[callLost])}
	n.Total = n.OK + n.Throttled + n.Failed + n.Lost
	return n
}

// record counts how one call ended.
func (c *Cloud) record(from int32, a Action, p *Response) {
	if !a.known() {
		a = AnyAction // kept apart, so that a caller that speaks nonsense can be seen
	}
	o := callOK
	switch {
	case p.Lost:
		o = callLost
	case p.Code == codeThrottled:
		o = callThrottled
	case p.Code != "":
		o = callFailed
	}
	c.calls[a][o]++
	if from >= 0 {
		c.instances[from].calls[a][o]++
	}
}

// Calls is how all calls of an action ended; AnyAction gives those that named no known action.
func (c *Cloud) Calls(a Action) Count {
	if a >= ActionCount {
		return Count{}
	}
	return c.calls[a].count()
}

// CallsBy is Calls for those that one instance made.
func (c *Cloud) CallsBy(i InstanceID, a Action) Count {
	n := c.instanceIndex(i)
	if n < 0 || a >= ActionCount {
		return Count{}
	}
	return c.instances[n].calls[a].count()
}
