package conform

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Deadlines. EC2 says of neither how long it takes at most; these are many times what it usually takes.
const (
	consistency = 40 * time.Second       // until an answer shows what was done ("Eventual consistency in the Amazon EC2 API")
	transition  = 3 * time.Minute        // until an attach, a detach or a launch is through
	pause       = 500 * time.Millisecond // between two looks
	throttled   = 2 * time.Minute        // for how long a call that is throttled is repeated
)

// try is one row being asked. Its first difference ends it: everything asked later does nothing, and answers with nothing.
type try struct {
	*lab
	ctx  context.Context
	row  *Row
	err  error            // the first difference, or *skipped
	made map[string]*made // what calls have made, by its identifier
	left []string
}

// made is a resource that has to be taken away again.
type made struct {
	gone bool // by the row itself
}

// skipped is why a row cannot be asked here.
type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

func (t *try) skip(format string, args ...any) {
	if t.err == nil {
		t.err = &skipped{fmt.Sprintf(format, args...)}
	}
}

// differ is the row's result: it is kept if it is the first.
func (t *try) differ(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// is compares.
func (t *try) is(what, found, expected string) {
	if found != expected {
		t.differ("%s: expected %s, found %s", what, quote(expected), quote(found))
	}
}

func (t *try) holds(ok bool, format string, args ...any) {
	if !ok {
		t.differ(format, args...)
	}
}

func quote(s string) string {
	if s == "" {
		return "nothing"
	}
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}

func quoteAll(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// wait lets time pass between two looks; false: there is no sense in another one.
func (t *try) wait() bool { return t.err == nil && t.Sleep(t.ctx, pause) == nil }

// settle lets what was made become known, for rows whose expectation an old answer would meet too.
func (t *try) settle() {
	if t.err == nil {
		_ = t.Sleep(t.ctx, 6*pause)
	}
}

// eventually asks again until nothing is wrong any more, or the deadline has passed. look says what is wrong.
func (t *try) eventually(within time.Duration, look func() string) {
	deadline := t.Now().Add(within)
	for t.err == nil {
		wrong := look()
		if t.err != nil || wrong == "" {
			return
		}
		if !t.Now().Before(deadline) || !t.wait() {
			t.differ("%s, still after %v", wrong, within)
		}
	}
}

// call makes a call and repeats it while it is throttled. It is never nil.
func (t *try) call(action string, pairs ...string) *answer {
	deadline := t.Now().Add(throttled)
	for t.err == nil {
		a, err := t.post(t.ctx, form(action, pairs...), signed)
		if err != nil {
			t.differ("%s: expected an answer of EC2's, found: %v", action, err)
			break
		}
		if a.Code == "RequestLimitExceeded" && t.Now().Before(deadline) {
			t.wait()
			continue
		}
		t.note(action, a, pairs)
		return a
	}
	return &answer{}
}

// note remembers what a call has made, and what is gone.
func (t *try) note(action string, a *answer, pairs []string) {
	if a.Code != "" {
		return
	}
	switch action {
	case createENI:
		if id := a.root.say("networkInterface/networkInterfaceId"); id != "" && t.made[id] == nil {
			t.made[id] = &made{}
		}
	case runInstances:
		for _, id := range a.root.texts("instancesSet/item/instanceId") {
			if t.made[id] == nil {
				t.made[id] = &made{}
			}
		}
	case deleteENI, terminateInstances:
		for k := 1; k < len(pairs); k += 2 {
			if m := t.made[pairs[k]]; m != nil {
				m.gone = true
			}
		}
	}
}

// young says whether an answer only means that EC2 does not know yet what it has made itself a moment ago.
func (t *try) young(a *answer, pairs []string) bool {
	if !strings.HasSuffix(a.Code, ".NotFound") {
		return false
	}
	for k := 1; k < len(pairs); k += 2 {
		if m := t.made[pairs[k]]; m != nil && !m.gone {
			return true
		}
	}
	return false
}

// settled is call, repeated while the answer may be due to the youth of what the row has made. want is the code that is no such answer.
func (t *try) settled(want, action string, pairs ...string) *answer {
	deadline := t.Now().Add(consistency)
	for {
		a := t.call(action, pairs...)
		if t.err != nil || a.Code == want || !t.young(a, pairs) || !t.Now().Before(deadline) || !t.wait() {
			return a
		}
	}
}

// ok is a call that has to succeed. It gives the answer's root.
func (t *try) ok(action string, pairs ...string) *element {
	a := t.settled("", action, pairs...)
	if a.Code != "" {
		t.differ("%s: expected success, found %s: %s", action, a.Code, a.Message)
	}
	return &a.root
}

// statuses are those of errors that are not a 400 ("Error codes for the Amazon EC2 API", "Common errors").
var statuses = map[string]int{
	"RequestLimitExceeded": 503, "Unavailable": 503, "InternalError": 500, "UnauthorizedOperation": 403, "AuthFailure": 401,
	"DryRunOperation": 412, "MissingAuthenticationToken": 403, "SignatureDoesNotMatch": 403,
}

// refused is a call that has to fail, with one of the codes that are separated by "|".
func (t *try) refused(codes, action string, pairs ...string) *answer {
	first, _, _ := strings.Cut(codes, "|")
	a := t.settled(first, action, pairs...)
	t.code(codes, action, a)
	return a
}

// code compares an answer's code and status.
func (t *try) code(codes, what string, a *answer) {
	if t.err != nil {
		return
	}
	for code := range strings.SplitSeq(codes, "|") {
		if a.Code != code {
			continue
		}
		want := cmp.Or(statuses[code], 400)
		t.holds(a.Status == want, "%s: %s with status %d, expected %d", what, code, a.Status, want)
		return
	}
	if a.Code == "" {
		t.differ("%s: expected %s, found success", what, codes)
		return
	}
	t.differ("%s: expected %s, found %s: %s", what, codes, a.Code, a.Message)
}

// tag is the name and value of the tag on everything that the row makes.
func (t *try) tag() string { return t.run + "." + t.row.Name }

// tagged are the parameters that tag what a call makes.
func (t *try) tagged(kind string) []string {
	return []string{"TagSpecification.1.ResourceType", kind, "TagSpecification.1.Tag.1.Key", tagKey, "TagSpecification.1.Tag.1.Value", t.tag()}
}

// unique is a text that no other call has used.
func (t *try) unique() string {
	t.calls++
	return t.run + "-" + strconv.Itoa(t.calls)
}

// in are the parameters of a new interface in a subnet.
func (t *try) in(subnet string, more ...string) []string {
	return slices.Concat([]string{"SubnetId", subnet}, t.tagged("network-interface"), more)
}

// create makes an interface in the subnet.
func (t *try) create(more ...string) *element {
	return t.ok(createENI, t.in(t.subnet, more...)...).get("networkInterface")
}

// eni is create, for rows that need no more than the identifier.
func (t *try) eni(more ...string) string { return t.create(more...).say("networkInterfaceId") }

// see looks at an interface until nothing is wrong with it, and gives it as it was then.
func (t *try) see(id string, within time.Duration, wrong func(e *element) string) (e *element) {
	t.eventually(within, func() string {
		e = t.ok(describeENIs, "NetworkInterfaceId.1", id).get("networkInterfaceSet/item")
		return wrong(e)
	})
	return e
}

// shows waits until an element of an interface says something.
func (t *try) shows(id, path, expected string) *element {
	return t.see(id, consistency, func(e *element) string { return unlike(path, e.say(path), expected) })
}

func unlike(what, found, expected string) string {
	if found == expected {
		return ""
	}
	return fmt.Sprintf("%s: expected %s, found %s", what, quote(expected), quote(found))
}

// addresses are an interface's, primary first.
func addresses(e *element) []string { return e.texts("privateIpAddressesSet/item/privateIpAddress") }

// has waits until an interface has so many addresses.
func (t *try) has(id string, n int) []string {
	return addresses(t.see(id, consistency, func(e *element) string {
		return unlike("number of addresses", strconv.Itoa(len(addresses(e))), strconv.Itoa(n))
	}))
}

// attach attaches an interface to the instance, waits until that is through, and gives the attachment's identifier.
func (t *try) attach(eni string, more ...string) string {
	id := t.attachTo(t.instance, eni, t.freeIndex(), more...)
	t.attached(eni)
	return id
}

func (t *try) attachTo(instance, eni string, index int, more ...string) string {
	pairs := append([]string{"NetworkInterfaceId", eni, "InstanceId", instance, "DeviceIndex", strconv.Itoa(index)}, more...)
	return t.ok(attachENI, pairs...).say("attachmentId")
}

func (t *try) attached(eni string) *element {
	return t.see(eni, transition, func(e *element) string { return unlike("attachment's status", e.say("attachment/status"), "attached") })
}

// available waits until an interface is on no instance.
func (t *try) available(eni string) *element {
	return t.see(eni, transition, func(e *element) string {
		if e.say("attachment/status") != "" {
			return "attachment: expected none, found " + quote(e.say("attachment/status"))
		}
		return unlike("status", e.say("status"), "available")
	})
}

// freeIndex is a device index that nothing occupies on the instance. Rows clear up behind themselves, so it is looked for
// from the top: a stale answer would show the one that was used last.
func (t *try) freeIndex() int {
	used := t.ok(describeInstances, "InstanceId.1", t.instance).
		texts("reservationSet/item/instancesSet/item/networkInterfaceSet/item/attachment/deviceIndex")
	for k := 1; k < 64; k++ {
		n := (t.lastIndex+k-1)%30 + 1
		if !slices.Contains(used, strconv.Itoa(n)) {
			t.lastIndex = n
			return n
		}
	}
	t.skip("no device index is free on %s", t.instance)
	return 0
}

// clearUp takes away what the row has made, with the row's own verdict left as it is.
func (t *try) clearUp() {
	if len(t.made) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 2*transition)
	defer cancel()
	u := &try{lab: t.lab, ctx: ctx, row: t.row, made: map[string]*made{}}
	for _, instances := range [...]bool{true, false} { // first: interfaces may be on them
		for _, id := range slices.Sorted(maps.Keys(t.made)) {
			if strings.HasPrefix(id, "i-") != instances || t.made[id].gone {
				continue
			}
			u.err = nil
			if instances {
				u.endInstance(id)
			} else {
				u.endENI(id)
			}
			if u.err != nil {
				t.left = append(t.left, id+" ("+u.err.Error()+")")
			}
		}
	}
}

// endInstance terminates an instance and waits until it is.
func (t *try) endInstance(id string) {
	t.eventually(transition, func() string {
		if a := t.call(terminateInstances, "InstanceId.1", id); a.Code != "" && !strings.HasSuffix(a.Code, ".NotFound") {
			return "TerminateInstances: " + a.Code
		}
		state := t.call(describeInstances, "InstanceId.1", id).root.say("reservationSet/item/instancesSet/item/instanceState/name")
		return unlike("state", state, "terminated")
	})
}

// endENI detaches and deletes an interface. One that is not found may be too young to be: it is asked for again.
func (t *try) endENI(id string) {
	absent := 0
	t.eventually(transition, func() string {
		a := t.call(deleteENI, "NetworkInterfaceId", id)
		if a.Code == "" {
			return ""
		}
		if strings.HasSuffix(a.Code, ".NotFound") {
			if absent++; absent > 10 {
				return ""
			}
			return a.Code
		}
		e := t.call(describeENIs, "NetworkInterfaceId.1", id).root.get("networkInterfaceSet/item")
		if e.say("attachment/status") == "attached" {
			t.call(detachENI, "AttachmentId", e.say("attachment/attachmentId"))
		}
		return "DeleteNetworkInterface: " + a.Code + ": " + a.Message
	})
}

// raw posts a body as it is.
func (t *try) raw(body string, how signature) *answer {
	if t.err != nil {
		return &answer{}
	}
	a, err := t.post(t.ctx, body, how)
	if err != nil {
		t.differ("expected an answer of EC2's, found: %v", err)
		return &answer{}
	}
	return a
}

// with is a body with a parameter replaced.
func with(body, name, value string) string {
	v, err := url.ParseQuery(body)
	if err != nil {
		return body
	}
	v.Set(name, value)
	return v.Encode()
}
