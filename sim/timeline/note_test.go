package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/timeline"
)

const (
	first  = "eni-0ae6170280656bcc0"
	second = "eni-0123456789abcdef0"
)

// A daemon makes an ENI once. One that starts again takes it over from the record, one that had it taken away has it again, and of one that
// nobody made nobody says so.
func TestWhoMadeAnENI(t *testing.T) {
	var s timeline.Timeline
	ready := func(id string) { s.Note(0, 1, &ipam.Note{Point: ipam.ENIMade, ENI: id}) }
	s.Started(0, 1)
	ready(first)
	s.Call(0, 1, &ec2.Request{Action: ec2.CreateNetworkInterface}, &ec2.Response{ENI: ec2.ENI{ID: second}})
	ready(second)
	ready(second)
	s.Clear() // t=0
	s.Started(0, 1)
	ready(first)
	ready(second)
	ready(second)
	s.Note(0, 1, &ipam.Note{Point: ipam.IntentResumed, ENI: "eni-0000000000000000f"})
	ready("eni-0000000000000000f")
	want := []string{"ipamd starts", "eni-A taken over from the record", "eni-B taken over from the record", "eni-B is in service again",
		"an earlier daemon's intent carried on (eni-C)", "eni-C taken over from the record"}
	if got := told(&s); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	var before timeline.Timeline
	before.Started(0, 1)
	before.Note(0, 1, &ipam.Note{Point: ipam.ENIMade, ENI: first})
	before.Call(0, 1, &ec2.Request{Action: ec2.CreateNetworkInterface}, &ec2.Response{ENI: ec2.ENI{ID: second}})
	before.Note(0, 1, &ipam.Note{Point: ipam.ENIMade, ENI: second})
	if got := strings.Join(told(&before), "; "); got != "ipamd starts; eni-A taken into service; CreateNetworkInterface eni-B: ok; eni-B made" {
		t.Errorf("got %s", got)
	}
}

// told are the texts of the lines.
func told(s *timeline.Timeline) []string {
	var out []string
	for _, l := range strings.Split(strings.TrimSuffix(s.Whole(), "\n"), "\n") {
		out = append(out, l[20:])
	}
	return out
}

// Requests that get an error are counted by verb and reason, whatever pods they are about.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		verb ipam.Verb
		code int
		text string
		one  string
		many string
	}{
		{ipam.VerbAdd, ipam.CodeTryAgain, "cni add web-%d (sandbox aws-cni/c%d/eth0): no address: 17 assigned, %d cool down, 0 quarantined, 3 pods wait; growth is under way",
			"ADD told to retry: no free address", "42 ADDs told to retry: no free address"},
		{ipam.VerbAdd, ipam.CodeTryAgain, "cni add web-%d (sandbox aws-cni/c%d/eth0): ipamd is still recovering: instance metadata has not answered: %d refused; try again",
			"ADD told to retry: ipamd is still recovering: instance metadata has not answered",
			"42 ADDs told to retry: ipamd is still recovering: instance metadata has not answered"},
		{ipam.VerbDel, ipam.CodeTryAgain, "cni del aws-cni/c%d/eth%d: the release could not be made durable: no space left on device (%d); try again",
			"DEL left for later: the record could not be written", "42 DELs left for later: the record could not be written"},
		{ipam.VerbCheck, ipam.CodeDrifted, "cni check aws-cni/abc/eth0: the rule is missing", "CHECK found drift: the rule is missing", "42 CHECKs found drift: the rule is missing"},
		{ipam.VerbGC, ipam.CodeConfig, "cni gc aws-cni: cni.dev/valid-attachments is missing, which is not an empty list", "GC refused: it has no list of valid attachments",
			"42 GCs refused: it has no list of valid attachments"},
		{ipam.VerbAdd, ipam.CodeIO, "cni add aws-cni/c%d/eth%d: setting up the namespace failed: %d", "ADD failed: the namespace could not be set up", "42 ADDs failed: the namespace could not be set up"},
	} {
		var s timeline.Timeline
		for i := range 42 {
			text := c.text
			if strings.Contains(text, "%d") {
				text = fmt.Sprintf(text, i, i, i)
			}
			s.Refused(time.Duration(i)*time.Second, 1, &ipam.Reply{Verb: c.verb, Err: &ipam.Error{Code: c.code, Text: text}})
			if got := told(&s)[0]; i == 0 && got != c.one {
				t.Errorf("one is told as %q, expected %q", got, c.one)
			}
		}
		if got := strings.Join(told(&s), "\n"); got != c.many {
			t.Errorf("42 are told as %q, expected %q", got, c.many)
		}
	}
}

// Every coverage point is told in words, told by another line, or happens all the time; none by its bare name.
func TestNotesAreSentences(t *testing.T) {
	silent := map[ipam.Point]bool{ipam.DelUnknown: true, ipam.DelQueued: true, ipam.CallThrottled: true, ipam.ENIDrained: true, ipam.AddTimedOut: true,
		ipam.CallRefused: true, ipam.VersionRefused: true, ipam.GCRefused: true, ipam.SubnetSwitched: true}
	for i, name := range ipam.Marks() {
		var s timeline.Timeline
		m := ipam.Point(i + 1)
		s.Note(0, 1, &ipam.Note{Point: m, ENI: first, Warn: true, Text: "of " + second})
		text := strings.TrimSuffix(s.Whole(), "\n")
		switch {
		case silent[m] != (text == ""):
			t.Errorf("%s is told as %q", name, text)
		case text != "" && (strings.Contains(text, name) || strings.ContainsAny(text, "#%") || strings.Contains(text, first)):
			t.Errorf("%s is told as %q", name, text)
		}
	}
}

// An ENI has one name in timeline and report; its ID is said once.
func TestNamed(t *testing.T) {
	var s timeline.Timeline
	for i := range 30 {
		id := fmt.Sprintf("eni-%017x", i)
		want := "eni-" + string(rune('A'+i))
		if i > 25 {
			want = "eni-A" + string(rune('A'+i-26))
		}
		if got := s.ENI(id); got != want || s.ENI(id) != want {
			t.Errorf("the %d. is %s, expected %s", i+1, got, want)
		}
	}
	got := s.Named("node-1 freed eni-00000000000000001, and eni-00000000000000001's pods; " + first + " is nobody's, eni-B is short")
	if got != "node-1 freed eni-B (eni-00000000000000001), and eni-B's pods; "+first+" is nobody's, eni-B is short" {
		t.Errorf("got %q", got)
	}
}
