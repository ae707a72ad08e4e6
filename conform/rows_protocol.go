package conform

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func protocolRows() []Row {
	body := form(describeSubnets)
	return []Row{
		{Name: "protocol.answer", Call: describeSubnets, When: "any success", Want: "an element ACTIONResponse of the API's namespace", Source: queries, run: func(t *try) {
			a := t.raw(body, signed)
			t.is("root element", a.root.name, describeSubnets+"Response")
			t.holds(strings.Contains(a.Body, "http://ec2.amazonaws.com/doc/"+version+"/"), "namespace: expected http://ec2.amazonaws.com/doc/%s/, found %s", version, quote(a.Body))
		}},
		{Name: "protocol.request-id", Call: describeSubnets, When: "two calls", Want: "two different requestIds", Source: queries, run: func(t *try) {
			a, b := t.ok(describeSubnets).say("requestId"), t.ok(describeSubnets).say("requestId")
			t.holds(a != "" && a != b, "requestId: expected two that differ, found %s and %s", quote(a), quote(b))
		}},
		{Name: "protocol.error", Call: describeSubnets, When: "any failure", Want: "Response/Errors/Error with Code and Message, and RequestID", Source: errorCodes, run: func(t *try) {
			a := t.refused("InvalidSubnetID.NotFound", describeSubnets, "SubnetId.1", noSubnet)
			t.is("root element", a.root.name, "Response")
			t.holds(a.Message != "" && a.root.say("RequestID") != "", "expected Message and RequestID, found %s", quote(a.Body))
		}},
		{Name: "protocol.media-type", Call: describeSubnets, When: "any call", Want: "Content-Type text/xml", Source: queries, run: func(t *try) {
			kind := t.raw(body, signed).Header.Get("Content-Type")
			t.holds(strings.HasPrefix(kind, "text/xml"), "Content-Type: expected text/xml, found %s", quote(kind))
		}},
		{Name: "protocol.get", Call: describeSubnets, When: "the verb GET, with parameters in the URL", Want: "the same answer as to POST", Source: queries, run: func(t *try) {
			a, err := t.query(t.ctx, body, signed)
			if err != nil {
				t.differ("GET: expected an answer of EC2's, found: %v", err)
				return
			}
			t.is("error", a.Code, "")
			t.is("root element", a.root.name, describeSubnets+"Response")
		}},
		{Name: "protocol.no-action", Call: "none", When: "no Action", Want: "MissingAction", Source: common, run: func(t *try) {
			t.code("MissingAction|InvalidAction|MissingParameter", "a call without Action", t.raw("Version="+version, signed))
		}},
		{Name: "protocol.unknown-action", Call: "DescribeElephants", When: "an Action that does not exist", Want: "InvalidAction", Source: common, run: func(t *try) {
			t.refused("InvalidAction", "DescribeElephants")
		}},
		{Name: "protocol.action-case", Call: "describesubnets", When: "an Action in lower case", Want: "InvalidAction", Source: common, run: func(t *try) {
			t.refused("InvalidAction", "describesubnets")
		}},
		{Name: "protocol.no-version", Call: describeSubnets, When: "no Version", Want: "MissingParameter|InvalidAction", Source: common, run: func(t *try) {
			t.code("MissingParameter|InvalidAction", "a call without Version", t.raw("Action="+describeSubnets, signed))
		}},
		{Name: "protocol.old-version", Call: describeSubnets, When: "a Version that never was", Want: "NoSuchVersion|InvalidAction", Source: common, run: func(t *try) {
			t.code("NoSuchVersion|InvalidAction", "a call of version 1999-01-01", t.raw(with(body, "Version", "1999-01-01"), signed))
		}},
		{Name: "protocol.unknown-parameter", Call: describeSubnets, When: "a parameter that the action does not have", Want: "UnknownParameter", Source: common, run: func(t *try) {
			t.refused("UnknownParameter", describeSubnets, "Colour", "red")
		}},
		{Name: "protocol.boolean", Call: describeSubnets, When: "DryRun is neither true nor false", Want: "InvalidParameterValue", Source: common, run: func(t *try) {
			t.refused("InvalidParameterValue", describeSubnets, "DryRun", "perhaps")
		}},
		{Name: "protocol.unsigned", Call: describeSubnets, When: "no signature", Want: "MissingAuthenticationToken|AuthFailure", Source: signing, run: func(t *try) {
			t.code("MissingAuthenticationToken|AuthFailure", "a call without signature", t.raw(body, unsigned))
		}},
		{Name: "keys.unknown", Call: describeSubnets, When: "signed with an access key that nobody has", Want: "AuthFailure", Source: errorCodes, Marks: Keys, run: func(t *try) {
			t.code("AuthFailure|InvalidClientTokenId", "a call of nobody's key", t.raw(body, wrongKey))
		}},
		{Name: "keys.secret", Call: describeSubnets, When: "signed with another secret", Want: "AuthFailure|SignatureDoesNotMatch", Source: signing, Marks: Keys, run: func(t *try) {
			t.code("AuthFailure|SignatureDoesNotMatch", "a call signed with another secret", t.raw(body, wrongHash))
		}},
		{Name: "keys.old", Call: describeSubnets, When: "signed half an hour ago", Want: "RequestExpired|AuthFailure", Source: signing, Marks: Keys, run: func(t *try) {
			t.code("RequestExpired|AuthFailure", "a call signed half an hour ago", t.raw(body, oldClock))
		}},
		{Name: "keys.scope", Call: describeSubnets, When: "signed for another service", Want: "AuthFailure|SignatureDoesNotMatch", Source: signing, Marks: Keys, run: func(t *try) {
			t.code("AuthFailure|SignatureDoesNotMatch", "a call signed for s3", t.raw(body, otherScope))
		}},
	}
}

// throttleRows empty buckets with dry runs, which cost a token each and change nothing.
func throttleRows() []Row {
	row := func(name, action, when string, capacity, refill int, pairs ...string) Row {
		want := "so many pass, and the next is RequestLimitExceeded with status 503"
		return Row{Name: name, Call: action, When: when, Want: want, Source: throttling, Marks: Slow, run: func(t *try) {
			t.burst(capacity, refill, action, pairs...)
		}}
	}
	one := []string{"NetworkInterfaceId", noENI}
	attach := []string{"NetworkInterfaceId", noENI, "InstanceId", noInstance, "DeviceIndex", "1"}
	tag := []string{"ResourceId.1", noENI, "Tag.1.Key", "k", "Tag.1.Value", "v"}
	filter := []string{"Filter.1.Name", "tag-key", "Filter.1.Value.1", tagKey}
	return []Row{
		row("throttle.attach", attachENI, "a full bucket of 50, which gains 5 a second", 50, 5, attach...),
		row("throttle.detach", detachENI, "a full bucket of 50, which gains 5 a second", 50, 5, "AttachmentId", noAttachment),
		row("throttle.create", createENI, "a full bucket of 100, which gains 5 a second", 100, 5, "SubnetId", noSubnet),
		row("throttle.delete", deleteENI, "a full bucket of 100, which gains 5 a second", 100, 5, one...),
		row("throttle.modify", modifyENI, "a full bucket of 100, which gains 5 a second", 100, 5, append(one, "Description.Value", "x")...),
		row("throttle.create-tags", createTags, "a full bucket of 100, which gains 10 a second", 100, 10, tag...),
		row("throttle.delete-tags", deleteTags, "a full bucket of 100, which gains 10 a second", 100, 10, tag...),
		row("throttle.describe", describeENIs, "filtered; a full bucket of 100, which gains 20 a second", 100, 20, filter...),
		row("throttle.describe-all", describeENIs, "neither filters nor pages; a full bucket of 50, which gains 10 a second", 50, 10),
		row("throttle.run", runInstances, "a full bucket of 5, which gains 2 a second", 5, 2, "ImageId", "ami-00000000000000000", "InstanceType", small, "MinCount", "1", "MaxCount", "1", "SubnetId", noSubnet),
		row("throttle.terminate", terminateInstances, "a full bucket of 100, which gains 5 a second", 100, 5, "InstanceId.1", noInstance),
		{Name: "throttle.refill", Call: attachENI, When: "four seconds after the bucket was emptied", Want: "20 pass, more do not", Source: throttling, Marks: Slow, run: func(t *try) {
			t.burst(50, 5, attachENI, attach...)
			began := t.Now()
			_ = t.Sleep(t.ctx, 4*time.Second)
			passed, _ := t.volley(60, attachENI, attach...)
			most := 5*t.Now().Sub(began).Seconds() + 2
			t.holds(passed >= 19 && float64(passed) <= most, "passed: expected 20 to %.0f, found %d", most, passed)
		}},
		{Name: "throttle.by-action", Call: detachENI, When: "another action's bucket is empty", Want: "it is not throttled", Source: throttling, Marks: Slow, run: func(t *try) {
			t.burst(50, 5, attachENI, attach...)
			passed, _ := t.volley(1, detachENI, "AttachmentId", noAttachment)
			t.holds(passed == 1, "DetachNetworkInterface while AttachNetworkInterface is throttled: expected it to pass, found RequestLimitExceeded")
		}},
	}
}

// burst waits until a bucket is full, empties it, and judges by how many calls passed.
func (t *try) burst(capacity, refill int, action string, pairs ...string) {
	if t.err == nil {
		_ = t.Sleep(t.ctx, time.Duration(capacity/refill+1)*time.Second)
	}
	began := t.Now()
	passed, refused := t.volley(capacity+capacity/2+30, action, pairs...)
	most := float64(capacity) + float64(refill)*t.Now().Sub(began).Seconds() + 1
	t.holds(passed >= capacity && float64(passed) <= most, "calls that passed: expected %d to %.0f, found %d", capacity, most, passed)
	t.holds(refused > 0, "calls that were throttled: expected some, found none")
}

// volley makes dry runs at once, and counts those that passed and those that were throttled.
func (t *try) volley(n int, action string, pairs ...string) (passed, refused int) {
	const atOnce = 16
	var ok, no, left atomic.Int64
	left.Store(int64(n))
	body := form(action, append(pairs[:len(pairs):len(pairs)], "DryRun", "true")...)
	answers := make(chan *answer, n)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for left.Add(-1) >= 0 && t.ctx.Err() == nil {
				a, err := t.post(t.ctx, body, signed)
				switch {
				case err == nil && a.Code == "RequestLimitExceeded" && a.Status == 503:
					no.Add(1)
				case err == nil && a.Code == "DryRunOperation":
					ok.Add(1)
				case err == nil:
					answers <- a
				}
			}
		})
	}
	group.Wait()
	close(answers)
	for a := range answers {
		t.code("DryRunOperation", "a dry run of "+action, a)
	}
	return int(ok.Load()), int(no.Load())
}
