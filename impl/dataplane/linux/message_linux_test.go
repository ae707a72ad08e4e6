package linux

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// FuzzMessages: whatever the bytes are, nothing panics.
func FuzzMessages(f *testing.F) {
	var r netlink.Request
	r.AskLinks()
	r.Finish()
	f.Add(r.B)
	r.Reset().Route(unix.RTM_NEWROUTE, 0, 24, 0, 0, unix.RTN_UNICAST)
	at := r.Nest(unix.RTA_MULTIPATH)
	r.Raw(8, 0, 0, 0, 1, 0, 0, 0)
	r.End(at)
	r.Finish()
	f.Add(r.B)
	f.Fuzz(func(_ *testing.T, b []byte) {
		for h, rest, ok := netlink.Split(b); ok; h, rest, ok = netlink.Split(rest) {
			_ = h.Verdict()
			_ = commentOf(h.Body)
			parseAll(h.Body)
		}
		parseAll(b)
	})
}

func parseAll(b []byte) {
	var link netlink.Link
	if link.Parse(b) {
		deviceOf(&link)
	}
	var route routeView
	if route.parse(b) {
		route.observed()
	}
	var rule rule
	rule.parse(b)
	netlink.ParseAddress(b)
	parseProxy(b)
	source(b, ctaTupleOriginal)
	if r, ok := parseRule(b); ok {
		sameExpressions(r.expressions, r.expressions)
		comparedName(r.expressions)
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
