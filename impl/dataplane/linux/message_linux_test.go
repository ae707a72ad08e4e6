package linux

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzMessages: whatever the bytes are, nothing panics.
func FuzzMessages(f *testing.F) {
	var r request
	r.askLinks()
	r.number(1)
	f.Add(r.b)
	r.reset().route(unix.RTM_NEWROUTE, 0, 24, 0, 0, unix.RTN_UNICAST)
	at := r.nest(unix.RTA_MULTIPATH)
	r.raw(8, 0, 0, 0, 1, 0, 0, 0)
	r.end(at)
	r.number(1)
	f.Add(r.b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		for h, rest, ok := split(b); ok; h, rest, ok = split(rest) {
			_ = h.verdict()
			_ = commentOf(h.body)
			parseAll(h.body)
		}
		parseAll(b)
	})
}

func parseAll(b []byte) {
	var link linkView
	if link.parse(b) {
		link.device()
	}
	var route routeView
	if route.parse(b) {
		route.observed()
	}
	var rule rule
	rule.parse(b)
	parseAddress(b)
	parseProxy(b)
	source(b, ctaTupleOriginal)
	var nat natSeen
	nat.add(b)
	for _, r := range nat.rules {
		sameExpressions(r.expressions, r.expressions)
		parseAbout(r.comment)
	}
}

func TestMAC(t *testing.T) {
	for text, want := range map[string]bool{"0a:00:00:00:00:01": true, "0A:00:00:00:00:01": true, "": false, "0a:00:00:00:00": false, "0a-00-00-00-00-01": false, "0g:00:00:00:00:01": false} {
		if _, ok := parseMAC(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}
