package cli

import (
	"fmt"
	"strings"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/runner"
)

// describeInput is an input in one line.
func describeInput(in ipam.Input) string {
	switch in := in.(type) {
	case nil:
		return "tick"
	case ipam.Start:
		s := fmt.Sprintf("Start version %d, %s", in.Version, runner.Count(len(in.Rows), "row"))
		if in.Rebooted {
			s += ", after a reboot"
		}
		return s + because(in.Unread)
	case ipam.Set:
		return "Set settings"
	case ipam.Add:
		return fmt.Sprintf("ADD %v, request %d, pod %v, netns %d", in.Att, in.Req, in.Pod, in.Netns)
	case ipam.Del:
		s := fmt.Sprintf("DEL %v, request %d, pod %v", in.Att, in.Req, in.Pod)
		if in.Intent {
			s += ", from an intent on disk"
		}
		return s
	case ipam.Check:
		return fmt.Sprintf("CHECK %v, request %d", in.Att, in.Req)
	case ipam.GC:
		if in.Absent {
			return fmt.Sprintf("GC %s, request %d, without a list", in.Network, in.Req)
		}
		return fmt.Sprintf("GC %s, request %d, %s valid", in.Network, in.Req,
			runner.Count(len(in.Valid), "attachment"))
	case ipam.Gone:
		return fmt.Sprintf("Gone: the caller of request %d hung up", in.Req)
	case ipam.Seen:
		return describeSeen(&in)
	case ipam.Called:
		return fmt.Sprintf("Called #%d: %v", in.ID, in.Result.Class) + because(in.Result.Code)
	case ipam.Applied:
		if in.Err != nil {
			return fmt.Sprintf("Applied #%d up to operation %d: %v", in.ID, in.Done, in.Err)
		}
		return fmt.Sprintf("Applied #%d, %s", in.ID, runner.Count(in.Done, "operation"))
	case ipam.Saved:
		if in.Err != "" {
			return fmt.Sprintf("Saved %v up to %d: not", in.Store, in.Seq) + because(in.Err)
		}
		return fmt.Sprintf("Saved %v up to %d", in.Store, in.Seq)
	case ipam.Stop:
		return "Stop"
	}
	return "an input that this version does not know"
}

func describeSeen(in *ipam.Seen) string {
	s := fmt.Sprintf("Seen #%d %v", in.ID, in.What)
	if in.ID == 0 {
		return fmt.Sprintf("Seen %v: something changed", in.What)
	}
	if !in.Complete {
		s += ", incomplete"
	}
	switch {
	case in.IMDS != nil:
		s += ", " + runner.Count(len(in.IMDS.ENIs), "ENI")
	case in.Kernel != nil:
		s += ", " + runner.Count(len(in.Kernel.Links), "link")
	case in.What == ipam.LookRuntime:
		s += fmt.Sprintf(", %d sandboxes", len(in.Sandboxes))
	case in.What == ipam.LookPods:
		s += ", " + runner.Count(len(in.Pods), "pod")
	case in.What == ipam.LookENI || in.What == ipam.LookLeaked || in.What == ipam.LookAttached:
		s += ", " + runner.Count(len(in.ENIs), "ENI")
	}
	return s + because(in.Err)
}

// describeEffect is an effect in one line.
func describeEffect(e ipam.Effect) string {
	switch e := e.(type) {
	case *ipam.Reply:
		if e.Err != nil {
			return fmt.Sprintf("Reply %d %v: code %d, %s", e.Req, e.Verb, e.Err.Code, e.Err.Text)
		}
		s := fmt.Sprintf("Reply %d %v: success", e.Req, e.Verb)
		if e.Address.IsValid() {
			s += ", " + e.Address.String()
		}
		return s
	case *ipam.Call:
		s := fmt.Sprintf("Call #%d %v", e.ID, e.Action)
		if e.ENI != "" {
			s += " " + e.ENI
		}
		if n := max(e.Count, len(e.Addresses)); n > 0 {
			s += fmt.Sprintf(", %d addresses", n)
		}
		return s
	case *ipam.Look:
		return strings.TrimRight(fmt.Sprintf("Look #%d %v %s", e.ID, e.What, strings.Join(e.ENIs, " ")), " ")
	case *ipam.Apply:
		return fmt.Sprintf("Apply #%d %v, %s", e.ID, e.Lane, runner.Count(len(e.Plan.Ops), "operation"))
	case *ipam.Save:
		return fmt.Sprintf("Save %v %d: put %d, drop %d", e.Store, e.Seq, len(e.Put), len(e.Drop))
	case *ipam.Note:
		s := "Note " + e.Point.String()
		if e.ENI != "" {
			s += " " + e.ENI
		}
		if e.Addr.IsValid() {
			s += " " + e.Addr.String()
		}
		return s + because(e.Text)
	}
	return "an effect that this version does not know"
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
