package judge

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/splitmix"
)

// A story is what happens in one life: inputs, effects, and durations that pass.
type story []any

// tell runs a story and returns what the contract found broken.
func tell(c *Contract, s story) []string {
	var broken []string
	now := time.Duration(0)
	for _, step := range s {
		switch step := step.(type) {
		case time.Duration:
			now += step
			broken = append(broken, c.Input(now, nil)...)
		case ipam.Input:
			broken = append(broken, c.Input(now, step)...)
		case ipam.Effect:
			broken = append(broken, c.Effects([]ipam.Effect{step})...)
		case []ipam.Effect:
			broken = append(broken, c.Effects(step)...)
		case story:
			panic("join stories with then")
		}
	}
	return broken
}

func then(parts ...story) story {
	var s story
	for _, p := range parts {
		s = append(s, p...)
	}
	return s
}

var (
	web   = ipam.Attachment{Network: "aws-cni", ContainerID: "web", IfName: "eth0"}
	api   = ipam.Attachment{Network: "aws-cni", ContainerID: "api", IfName: "eth0"}
	addr1 = netip.MustParseAddr("10.0.10.11")
	addr2 = netip.MustParseAddr("10.0.10.12")
	begin = ipam.Start{}
	sick  = &dataplane.Error{}
)

func assigned(a netip.Addr, att ipam.Attachment) ipam.Row {
	return ipam.Row{Address: a, State: ipam.Assigned, Att: att}
}

func cooling(a netip.Addr, att ipam.Attachment) ipam.Row {
	return ipam.Row{Address: a, State: ipam.Cooling, Att: att}
}

func put(seq uint64, rows ...ipam.Row) *ipam.Save { return &ipam.Save{Seq: seq, Put: rows} }

func drop(seq uint64, addrs ...netip.Addr) *ipam.Save {
	s := &ipam.Save{Seq: seq}
	for _, a := range addrs {
		s.Drop = append(s.Drop, ipam.Key{Address: a})
	}
	return s
}

func saved(seq uint64) ipam.Saved { return ipam.Saved{Seq: seq} }

func unsaved(seq uint64) ipam.Saved { return ipam.Saved{Seq: seq, Err: "no space left on device"} }

func wire(id ipam.ID, att ipam.Attachment) *ipam.Apply {
	return &ipam.Apply{ID: id, Lane: ipam.Lane{Kind: ipam.PodLane, Att: att}}
}

func done(id ipam.ID) ipam.Applied { return ipam.Applied{ID: id} }

func failed(id ipam.ID) ipam.Applied { return ipam.Applied{ID: id, Err: sick} }

func add(r ipam.Req, att ipam.Attachment) ipam.Add { return ipam.Add{Req: r, Att: att} }

func del(r ipam.Req, att ipam.Attachment) ipam.Del { return ipam.Del{Req: r, Att: att} }

func added(r ipam.Req, att ipam.Attachment, a netip.Addr) *ipam.Reply {
	return &ipam.Reply{Req: r, Verb: ipam.VerbAdd, Att: att, Address: a}
}

func deleted(r ipam.Req, att ipam.Attachment) *ipam.Reply {
	return &ipam.Reply{Req: r, Verb: ipam.VerbDel, Att: att}
}

func refused(r ipam.Req, v ipam.Verb, att ipam.Attachment) *ipam.Reply {
	return &ipam.Reply{Req: r, Verb: v, Att: att, Err: &ipam.Error{Code: ipam.CodeTryAgain, Text: "try again"}}
}

func intended(seq uint64, token, eni string, doing ipam.Action) *ipam.Save {
	return &ipam.Save{Store: ipam.LibStore, Seq: seq, Put: []ipam.Row{{Intent: &ipam.Intent{Token: token, ENI: ipam.ENI{ID: eni}, Doing: doing}}}}
}

func libSaved(seq uint64) ipam.Saved { return ipam.Saved{Store: ipam.LibStore, Seq: seq} }

// webHas1 is an ADD of web, served: Save 1, Apply 1, request 1.
var webHas1 = story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), done(1), added(1, web, addr1)}

func TestContract(t *testing.T) {
	from1 := ipam.Start{Rows: []ipam.Row{assigned(addr1, web)}}
	for _, x := range []struct {
		name   string
		story  story
		breaks string // "" is nothing
	}{
		// ADD
		{"add in order", webHas1, ""},
		{"add without a row", story{begin, add(1, web), added(1, web, addr1)}, "expected a durable row"},
		{"add before saved", story{begin, add(1, web), put(1, assigned(addr1, web)), added(1, web, addr1)}, "expected a durable row"},
		{"add before apply", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), added(1, web, addr1)}, "before a plan that followed"},
		{"add before applied", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), added(1, web, addr1)}, "before a plan that followed"},
		{"add applied before saved", story{begin, add(1, web), put(1, assigned(addr1, web)), wire(1, web), done(1), saved(1), added(1, web, addr1)}, "before a plan that followed"},
		{"add applied with an error", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), failed(1), added(1, web, addr1)}, "before a plan that followed"},
		{"add applied for another", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, api), done(1), added(1, web, addr1)}, "before a plan that followed"},
		{"add applied by an unknown id", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), done(7), added(1, web, addr1)}, "before a plan that followed"},
		{"add answers another address", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), done(1), added(1, web, addr2)}, "expected a durable row"},
		{"add after a failed save", story{begin, add(1, web), put(1, assigned(addr1, web)), unsaved(1), wire(1, web), done(1), added(1, web, addr1)}, "expected a durable row"},
		{"add again", then(webHas1, story{add(2, web), added(2, web, addr1)}), ""},
		{"add again after a restart", story{from1, add(2, web), added(2, web, addr1)}, ""},
		{"add again after a reboot", story{ipam.Start{Rebooted: true, Rows: from1.Rows}, add(2, web), added(2, web, addr1)}, "expected a durable row"},
		{"add again after a restart, other address", story{from1, add(2, web), added(2, web, addr2)}, "expected a durable row"},
		{"add of a row recovered before it", story{begin, put(1, assigned(addr1, web)), saved(1), add(1, web), added(1, web, addr1)}, ""},
		{"add of a row recovered meanwhile", story{begin, add(1, web), []ipam.Effect{put(1, assigned(addr1, web)),
			&ipam.Note{Point: ipam.RecoveredKernel, Att: web}}, saved(1), added(1, web, addr1)}, ""},
		{"add of a recovered row before it is durable", story{begin, add(1, web), []ipam.Effect{put(1, assigned(addr1, web)),
			&ipam.Note{Point: ipam.RecoveredKernel, Att: web}, added(1, web, addr1)}}, "expected a durable row"},
		{"add while its release is saved", then(webHas1, story{add(2, web), put(2, cooling(addr1, web)), added(2, web, addr1)}), "not durable"},
		{"add takes the next address", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), failed(1),
			put(2, cooling(addr1, web), assigned(addr2, web)), saved(2), wire(2, web), done(2), added(1, web, addr2)}, ""},
		{"add takes the next address unwired", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), done(1),
			put(2, cooling(addr1, web), assigned(addr2, web)), saved(2), added(1, web, addr2)}, "before a plan that followed"},
		{"add undone unwired", story{begin, add(1, web), put(1, assigned(addr1, web)), refused(1, ipam.VerbAdd, web), saved(1),
			put(2, cooling(addr1, web)), saved(2), del(2, web), deleted(2, web)}, ""},

		{"add tried again after a failed save", story{begin, add(1, web), put(1, assigned(addr1, web)), unsaved(1), put(2, assigned(addr2, web)), saved(2), added(1, web, addr2)}, "before a plan that followed"},
		{"add of a recovered row after a refusal", story{begin, add(1, web), []ipam.Effect{put(1, assigned(addr1, web)),
			&ipam.Note{Point: ipam.RecoveredKernel, Att: web}}, refused(1, ipam.VerbAdd, web), saved(1), add(2, web), added(2, web, addr1)}, ""},
		{"add while its older address becomes free", then(webHas1, story{put(2, cooling(addr1, web)), saved(2), wire(2, web), done(2),
			add(2, web), put(3, assigned(addr2, web)), drop(4, addr1), saved(4), wire(3, web), done(3), added(2, web, addr2)}), ""},
		{"two addresses for one attachment", then(webHas1, story{add(2, web), put(2, assigned(addr2, web))}), "expected one address"},
		{"two addresses for one attachment, one save", story{begin, add(1, web), add(2, web), put(1, assigned(addr1, web), assigned(addr2, web))}, "expected one address"},
		{"two addresses, any order in one save", then(webHas1, story{put(2, assigned(addr2, web), cooling(addr1, web))}), ""},
		{"two addresses, earlier life", story{from1, add(2, web), put(1, assigned(addr2, web))}, "expected one address"},

		// DEL
		{"del of what an early plan touched", story{begin, add(1, web), put(1, assigned(addr1, web)), wire(1, web), saved(1), done(1), refused(1, ipam.VerbAdd, web),
			del(2, web), put(2, cooling(addr1, web)), saved(2), deleted(2, web)}, "before the removal"},
		{"del in order", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), wire(2, web), done(2), deleted(2, web)}), ""},
		{"del of the unknown", story{begin, del(1, web), deleted(1, web)}, ""},
		{"del twice", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), wire(2, web), done(2), deleted(2, web), del(3, web), deleted(3, web)}), ""},
		{"del before save", then(webHas1, story{del(2, web), deleted(2, web)}), "is assigned to it"},
		{"del before saved", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), deleted(2, web)}), "is assigned to it"},
		{"del before removal", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), deleted(2, web)}), "before the removal"},
		{"del before removed", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), wire(2, web), deleted(2, web)}), "before the removal"},
		{"del removed before saved", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), wire(2, web), done(2), saved(2), deleted(2, web)}), "before the removal"},
		{"del removed with an error", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), wire(2, web), failed(2), deleted(2, web)}), "before the removal"},
		{"del removed at the second try", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), saved(2), wire(2, web), failed(2),
			put(3, cooling(addr1, web)), saved(3), wire(3, web), done(3), deleted(2, web)}), ""},
		{"del of a dropped row", then(webHas1, story{del(2, web), drop(2, addr1), saved(2), wire(2, web), done(2), deleted(2, web)}), ""},
		{"del of an earlier life's row", story{from1, del(1, web), put(1, cooling(addr1, web)), saved(1), deleted(1, web)}, "before the removal"},
		{"del after a failed save", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), unsaved(2), wire(2, web), done(2), deleted(2, web)}), "is assigned to it"},
		{"del refused after a failed save", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), unsaved(2), refused(2, ipam.VerbDel, web)}), ""},
		{"del overtakes a del", then(webHas1, story{del(2, web), put(2, cooling(addr1, web)), del(3, web), saved(2), wire(2, web), deleted(3, web)}), "before the removal"},
		{"del overtakes an add", story{begin, add(1, web), put(1, assigned(addr1, web)), del(2, web), deleted(2, web)}, "not durable"},
		{"del waits for an add", story{begin, add(1, web), put(1, assigned(addr1, web)), del(2, web), saved(1), wire(1, web), done(1), added(1, web, addr1),
			put(2, cooling(addr1, web)), saved(2), deleted(2, web)}, "before the removal"},
		{"del after a removal that failed", then(webHas1, story{put(2, cooling(addr1, web)), saved(2), wire(2, web), failed(2), del(2, web), deleted(2, web)}), ""},
		{"del while a removal is tried again", then(webHas1, story{put(2, cooling(addr1, web)), saved(2), wire(2, web), failed(2), wire(3, web), del(2, web), deleted(2, web)}), "before the removal"},
		{"del of another's address", story{from1, del(1, api), deleted(1, api)}, ""},

		// Saves
		{"seq from 1", story{begin, put(2, assigned(addr1, web))}, "expected 1"},
		{"seq with a hole", story{begin, put(1, assigned(addr1, web)), put(3, assigned(addr2, api))}, "expected 2"},
		{"seq twice", story{begin, put(1, assigned(addr1, web)), saved(1), put(1, assigned(addr2, api))}, "expected 2"},
		{"seq per store", story{begin, put(1, assigned(addr1, web)), intended(1, "t", "", ipam.CreateENI)}, ""},
		{"seq goes on after a failure", story{begin, put(1, assigned(addr1, web)), unsaved(1), put(2, assigned(addr1, api))}, ""},
		{"seq begins again after a failure", story{begin, put(1, assigned(addr1, web)), unsaved(1), put(1, assigned(addr1, api))}, "expected 2"},
		{"saved is cumulative", story{begin, add(1, web), add(2, api), put(1, assigned(addr1, web)), put(2, assigned(addr2, api)), saved(2),
			wire(1, web), wire(2, api), done(2), done(1), added(1, web, addr1), added(2, api, addr2)}, ""},
		{"a failure spares what was saved later", story{begin, add(1, web), add(2, api), put(1, assigned(addr1, web)), put(2, assigned(addr2, api)), unsaved(1), saved(2),
			wire(2, api), done(2), added(2, api, addr2), wire(1, web), done(1), added(1, web, addr1)}, "ADD of aws-cni/web/eth0 succeeded"},
		{"saved twice", story{begin, add(1, web), put(1, assigned(addr1, web)), unsaved(1), saved(1), wire(1, web), done(1), added(1, web, addr1)}, "expected a durable row"},
		{"saved that nobody asked for", story{begin, saved(9), ipam.Saved{Store: 2, Seq: 1}, add(1, web), put(1, assigned(addr1, web)), added(1, web, addr1)}, "expected a durable row"},
		{"one address, two attachments", then(webHas1, story{add(2, api), put(2, assigned(addr1, api))}), "expected it to be given up before"},
		{"one address, two attachments, one save", story{begin, add(1, web), add(2, api), put(1, assigned(addr1, web), assigned(addr1, api))}, "expected it to be given up before"},
		{"one address, two attachments, unsaved", story{begin, add(1, web), add(2, api), put(1, assigned(addr1, web)), saved(1), put(2, assigned(addr1, api))}, "expected it to be given up before"},
		{"one address after another", then(webHas1, story{put(2, cooling(addr1, web)), saved(2), wire(2, web), done(2), add(2, api), put(3, assigned(addr1, api))}), ""},
		{"the kernel corrects a record", story{from1, put(1, assigned(addr1, api)), saved(1)}, ""},
		{"a failed release leaves the holder", then(webHas1, story{put(2, cooling(addr1, web)), unsaved(2), add(2, api), put(3, assigned(addr1, api))}), "expected it to be given up before"},
		{"a failed save, said again by a later one", story{begin, add(1, web), add(2, api), put(1, assigned(addr1, web)), put(2, assigned(addr1, web)), unsaved(1),
			put(3, assigned(addr1, api))}, "expected it to be given up before"},
		{"a failed save, dropped by a later one", then(webHas1, story{put(2, cooling(addr1, web)), drop(3, addr1), unsaved(2), add(2, api), put(4, assigned(addr1, api))}), ""},
		{"a failed save of a recovered row", story{begin, add(1, web), []ipam.Effect{put(1, assigned(addr1, web)), &ipam.Note{Point: ipam.RecoveredKernel, Att: web}},
			unsaved(1), put(2, assigned(addr1, web)), saved(2), added(1, web, addr1)}, "before a plan that followed"},
		{"a failed save before that of a recovered row", story{begin, put(1, cooling(addr1, web)), []ipam.Effect{put(2, assigned(addr1, web)), &ipam.Note{Point: ipam.RecoveredKernel, Att: web}},
			unsaved(1), saved(2), add(1, web), added(1, web, addr1)}, ""},
		{"a failed save of a recovered row, said again by a later one", story{begin, []ipam.Effect{put(1, assigned(addr1, web)), &ipam.Note{Point: ipam.RecoveredKernel, Att: web}},
			put(2, assigned(addr1, web)), unsaved(1), saved(2), add(1, web), added(1, web, addr1)}, ""},
		{"a failed save in lib", story{begin, add(1, web), put(1, assigned(addr1, web)), intended(1, "t", "", ipam.CreateENI),
			ipam.Saved{Store: ipam.LibStore, Seq: 1, Err: "io"}, saved(1), wire(1, web), done(1), added(1, web, addr1)}, ""},
		{"an address row in lib", story{begin, &ipam.Save{Store: ipam.LibStore, Seq: 1, Put: []ipam.Row{assigned(addr1, web)}}}, "expected address rows in run"},
		{"an intent in run", story{begin, &ipam.Save{Seq: 1, Put: []ipam.Row{{Intent: &ipam.Intent{Token: "t"}}}}}, "expected address rows in run"},
		{"no such store", story{begin, &ipam.Save{Store: 2, Seq: 1}}, "expected run or lib"},

		// Calls
		{"call by token", story{begin, intended(1, "t", "", ipam.CreateENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.CreateENI, Token: "t"}}, ""},
		{"call by eni", story{begin, intended(1, "t", "eni-1", ipam.AttachENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.AttachENI, ENI: "eni-1"}}, ""},
		{"call of another token", story{begin, intended(1, "t", "", ipam.CreateENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.CreateENI, Token: "u"}}, "without a durable intent"},
		{"calls of two intents", story{begin, intended(1, "t", "eni-1", ipam.AttachENI), intended(2, "u", "eni-2", ipam.DetachENI), libSaved(2),
			&ipam.Call{ID: 1, Action: ipam.AttachENI, ENI: "eni-1"}, &ipam.Call{ID: 2, Action: ipam.DetachENI, ENI: "eni-2"}}, ""},
		{"call after the intent went on", story{begin, intended(1, "t", "eni-1", ipam.AttachENI), libSaved(1), intended(2, "t", "eni-1", ipam.ModifyENI), libSaved(2),
			&ipam.Call{ID: 1, Action: ipam.ModifyENI, ENI: "eni-1"}, &ipam.Call{ID: 2, Action: ipam.AttachENI, ENI: "eni-1"}}, "AttachNetworkInterface"},
		{"call before saved", story{begin, intended(1, "t", "", ipam.CreateENI), &ipam.Call{ID: 1, Action: ipam.CreateENI, Token: "t"}}, "without a durable intent"},
		{"call after a failed save", story{begin, intended(1, "t", "", ipam.CreateENI), ipam.Saved{Store: ipam.LibStore, Seq: 1, Err: "io"},
			&ipam.Call{ID: 1, Action: ipam.CreateENI, Token: "t"}}, "without a durable intent"},
		{"call saved in the other store", story{begin, put(1, assigned(addr1, web)), intended(1, "t", "", ipam.CreateENI), saved(1),
			&ipam.Call{ID: 1, Action: ipam.CreateENI, Token: "t"}}, "without a durable intent"},
		{"call of another action", story{begin, intended(1, "t", "eni-1", ipam.AttachENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.DetachENI, ENI: "eni-1"}}, "without a durable intent"},
		{"call of another eni", story{begin, intended(1, "t", "eni-1", ipam.DeleteENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.DeleteENI, ENI: "eni-2"}}, "without a durable intent"},
		{"call of nothing", story{begin, intended(1, "t", "", ipam.DeleteENI), libSaved(1), &ipam.Call{ID: 1, Action: ipam.DeleteENI}}, "without a durable intent"},
		{"call after the intent went", story{begin, intended(1, "t", "eni-1", ipam.DeleteENI), libSaved(1),
			&ipam.Save{Store: ipam.LibStore, Seq: 2, Drop: []ipam.Key{{Token: "t"}}}, libSaved(2), &ipam.Call{ID: 1, Action: ipam.DeleteENI, ENI: "eni-1"}}, "without a durable intent"},
		{"call of an earlier life's intent", story{ipam.Start{Rows: []ipam.Row{{Intent: &ipam.Intent{Token: "t", ENI: ipam.ENI{ID: "eni-1"}, Doing: ipam.DetachENI}}}},
			&ipam.Call{ID: 1, Action: ipam.DetachENI, ENI: "eni-1"}}, ""},

		// IDs, lanes, operations
		{"an id twice", story{begin, &ipam.Look{ID: 1, What: ipam.LookPods}, ipam.Seen{ID: 1}, &ipam.Look{ID: 1, What: ipam.LookPods}}, "expected a new one"},
		{"an id twice, other kind", story{begin, &ipam.Look{ID: 1}, wire(1, web)}, "expected a new one"},
		{"id 0", story{begin, &ipam.Look{}}, "expected a new one"},
		{"ids out of order", story{begin, wire(3, web), &ipam.Look{ID: 1}, &ipam.Look{ID: 2}, &ipam.Look{ID: 4}}, ""},
		{"outcomes out of order", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), &ipam.Look{ID: 1}, wire(2, web), ipam.Seen{ID: 1}, done(2), added(1, web, addr1)}, ""},
		{"an outcome of another kind", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), ipam.Called{ID: 1}, done(1), added(1, web, addr1)}, ""},
		{"attachments that come and go", story{begin, add(1, web), refused(1, ipam.VerbAdd, web), add(2, api), add(3, web), put(1, assigned(addr1, web), assigned(addr2, api)), saved(1),
			wire(1, web), wire(2, api), done(1), done(2), added(2, api, addr2), added(3, web, addr1)}, ""},
		{"an id of a gap twice", story{begin, wire(9, web), &ipam.Look{ID: 5}, &ipam.Look{ID: 5}}, "expected a new one"},
		{"outcomes nobody waits for", story{begin, ipam.Seen{ID: 4}, ipam.Called{ID: 5}, done(6), ipam.Seen{}}, ""},
		{"two applies on a pod lane", then(webHas1, story{wire(2, web), wire(3, web)}), "expected one at a time"},
		{"two applies on a pod lane of nothing", story{begin, add(1, web), wire(1, web), refused(1, ipam.VerbAdd, web), wire(2, web)}, "expected one at a time"},
		{"two applies on an eni lane", story{begin, &ipam.Apply{ID: 1, Lane: ipam.Lane{Kind: ipam.ENILane, ENI: "eni-1"}}, &ipam.Apply{ID: 2, Lane: ipam.Lane{Kind: ipam.ENILane, ENI: "eni-1"}}}, "expected one at a time"},
		{"two applies on the host lane", story{begin, &ipam.Apply{ID: 1, Lane: ipam.Lane{Kind: ipam.HostLane}}, &ipam.Apply{ID: 2, Lane: ipam.Lane{Kind: ipam.HostLane}}}, "expected one at a time"},
		{"one apply after another", story{begin, &ipam.Apply{ID: 1, Lane: ipam.Lane{Kind: ipam.HostLane}}, done(1), &ipam.Apply{ID: 2, Lane: ipam.Lane{Kind: ipam.HostLane}}}, ""},
		{"applies on several lanes", story{begin, &ipam.Apply{ID: 1, Lane: ipam.Lane{Kind: ipam.HostLane}}, &ipam.Apply{ID: 2, Lane: ipam.Lane{Kind: ipam.ENILane, ENI: "eni-1"}},
			&ipam.Apply{ID: 3, Lane: ipam.Lane{Kind: ipam.ENILane, ENI: "eni-2"}}, wire(4, web), wire(5, api)}, ""},
		{"a release while the add is saved", story{begin, add(1, web), put(1, assigned(addr1, web)), put(2, cooling(addr1, web))}, "while another operation on it runs"},
		{"a release while the add is applied", story{begin, add(1, web), put(1, assigned(addr1, web)), saved(1), wire(1, web), put(2, cooling(addr1, web))}, "while another operation on it runs"},
		{"an add while the removal is applied", then(webHas1, story{put(2, cooling(addr1, web)), saved(2), wire(2, web), add(2, web), put(3, assigned(addr2, web))}), "while another operation on it runs"},
		{"a release while a repair is applied", then(webHas1, story{wire(2, web), del(2, web), put(2, cooling(addr1, web))}), ""},

		// requests
		{"two replies", then(webHas1, story{added(1, web, addr1)}), "not open"},
		{"a reply to nobody", story{begin, refused(3, ipam.VerbAdd, web)}, "not open"},
		{"a reply of another verb", story{begin, del(1, web), refused(1, ipam.VerbAdd, web)}, "expected DEL"},
		{"a reply for another attachment", story{begin, del(1, web), deleted(1, api)}, "expected DEL of aws-cni/web"},
		{"request 0", story{begin, del(0, web), time.Minute}, ""},
		{"a request before start", story{del(1, web), begin, time.Minute}, ""},
		{"a request number twice", story{begin, del(1, web), del(1, api), deleted(1, web), time.Minute}, ""},
		{"check and gc", story{begin, ipam.Check{Req: 1, Att: web}, ipam.GC{Req: 2}, refused(1, ipam.VerbCheck, web), &ipam.Reply{Req: 2, Verb: ipam.VerbGC}}, ""},
		{"no reply in 30 s", story{begin, add(1, web), 30 * time.Second, time.Nanosecond}, "no reply by its deadline"},
		{"a reply after 30 s", story{begin, add(1, web), 30 * time.Second, refused(1, ipam.VerbAdd, web), time.Minute}, ""},
		{"a late reply is reported once", story{begin, del(1, web), 31 * time.Second, deleted(1, web), time.Hour}, "no reply by its deadline"},
		{"no reply is reported once", story{begin, del(1, web), 31 * time.Second, time.Minute, time.Hour}, "no reply by its deadline"},
		{"no reply to the one that is due later", story{begin, ipam.Check{Req: 1, Att: web, Deadline: time.Second}, del(2, web), refused(1, ipam.VerbCheck, web),
			2 * time.Second, 29 * time.Second}, "DEL of aws-cni/web/eth0 (request 2) had no reply"},
		{"no reply by the deadline", story{begin, ipam.Check{Req: 1, Att: web, Deadline: time.Second}, 1001 * time.Millisecond}, "no reply by its deadline 1s"},
		{"a deadline that has passed", story{begin, time.Minute, ipam.Del{Req: 1, Att: web, Deadline: time.Second}, deleted(1, web), time.Second}, ""},
		{"gc without a reply", story{begin, ipam.GC{Req: 1}, time.Minute}, "GC of"},
		{"gone", story{begin, add(1, web), ipam.Gone{Req: 1}, time.Hour}, ""},
		{"a reply to gone", story{begin, add(1, web), ipam.Gone{Req: 1}, refused(1, ipam.VerbAdd, web)}, ""},
		{"a success to gone", story{begin, add(1, web), ipam.Gone{Req: 1}, added(1, web, addr1)}, "expected a durable row"},

		// start
		{"look before start", story{&ipam.Look{ID: 1}}, "before Start"},
		{"save before start", story{put(1, assigned(addr1, web))}, "before Start"},
		{"apply before start", story{wire(1, web)}, "before Start"},
		{"a second start", then(webHas1, story{begin, add(2, web), added(2, web, addr1)}), ""},
	} {
		broken := tell(NewContract(), x.story)
		switch {
		case x.breaks == "" && len(broken) > 0:
			t.Errorf("%s: expected nothing broken, found %q", x.name, broken)
		case x.breaks != "" && (len(broken) != 1 || !strings.Contains(broken[0], x.breaks)):
			t.Errorf("%s: expected one sentence with %q, found %q", x.name, x.breaks, broken)
		}
	}
}

// What has ended leaves nothing behind, or a life of weeks would fill the memory.
func TestContractForgets(t *testing.T) {
	c := NewContract()
	tell(c, story{begin})
	for i := range 5000 {
		web := ipam.Attachment{Network: "aws-cni", ContainerID: strconv.Itoa(i), IfName: "eth0"}
		r, id, seq := ipam.Req(3*i+1), ipam.ID(5*i), uint64(3*i)
		broken := tell(c, story{
			&ipam.Look{ID: id + 3}, add(r, web), put(seq+1, assigned(addr1, web)), saved(seq + 1), wire(id+1, web), done(id + 1), added(r, web, addr1),
			ipam.Seen{ID: id + 3}, del(r+1, web), put(seq+2, cooling(addr1, web)), saved(seq + 2), wire(id+2, web), failed(id + 2),
			put(seq+3, cooling(addr1, web)), saved(seq + 3), wire(id+4, web), done(id + 4), deleted(r+1, web),
			add(r+2, api), ipam.Gone{Req: r + 2}, &ipam.Look{ID: id + 5}, ipam.Seen{ID: id + 5},
			31 * time.Second,
		})
		if len(broken) > 0 {
			t.Fatalf("cycle %d: %q", i, broken)
		}
	}
	if n := c.Outstanding() + c.Open() + len(c.byAtt) + len(c.used.gaps); n != 0 || len(c.rows) != 1 {
		t.Errorf("%d flights, %d requests, %d attachments, %d gaps, %d rows are remembered: expected one row",
			c.Outstanding(), c.Open(), len(c.byAtt), len(c.used.gaps), len(c.rows))
	}
	// A removal that never succeeds is remembered until the address is free for others, whatever the row says.
	seq, id := uint64(15001), ipam.ID(25001)
	tell(c, story{put(seq, assigned(addr2, web)), saved(seq), put(seq+1, ipam.Row{Address: addr2, State: ipam.Cooling}), saved(seq + 1), wire(id, web), failed(id)})
	if len(c.byAtt) != 0 {
		t.Errorf("%d attachments are remembered that no plan of this life had touched before the release", len(c.byAtt))
	}
	tell(c, story{put(seq+2, assigned(addr2, web)), saved(seq + 2), wire(id+1, web), done(id + 1),
		put(seq+3, ipam.Row{Address: addr2, State: ipam.Cooling}), saved(seq + 3), wire(id+2, web), failed(id + 2)})
	if len(c.byAtt) != 1 {
		t.Errorf("%d attachments are remembered: expected the one whose removal failed", len(c.byAtt))
	}
	tell(c, story{drop(seq+4, addr1, addr2), saved(seq + 4)})
	if len(c.byAtt)+len(c.rows) != 0 {
		t.Errorf("%d attachments and %d rows are remembered: expected none", len(c.byAtt), len(c.rows))
	}
	if len(c.holders) > 4 {
		t.Errorf("%d places for attachments, two were ever used", len(c.holders))
	}
}

// Any order of anything is an answer and not a panic, and a clone says what its original says.
func TestContractTakesAnything(t *testing.T) {
	atts := []ipam.Attachment{web, api, {}}
	addrs := []netip.Addr{addr1, addr2, {}}
	for seed := range uint64(60) {
		rnd := dice(seed)
		c := NewContract()
		now := time.Duration(0)
		for range 400 {
			now += time.Duration(rnd.below(3)) * time.Second
			att, addr, n := atts[rnd.below(3)], addrs[rnd.below(3)], uint64(rnd.below(12))
			in := []ipam.Input{nil, ipam.Start{Rows: []ipam.Row{assigned(addr, att)}}, add(ipam.Req(n), att), del(ipam.Req(n), att), ipam.Gone{Req: ipam.Req(n)},
				done(ipam.ID(n)), failed(ipam.ID(n)), saved(n), unsaved(n), libSaved(n), ipam.Called{ID: ipam.ID(n)}, ipam.Stop{}}[rnd.below(12)]
			row := ipam.Row{Address: addr, State: ipam.State(rnd.below(6)), Att: att}
			eff := []ipam.Effect{nil, put(n, row, assigned(addr2, att)), drop(n, addr), wire(ipam.ID(n), att), added(ipam.Req(n), att, addr), deleted(ipam.Req(n), att),
				intended(n, "t", "eni-1", ipam.DeleteENI), &ipam.Call{ID: ipam.ID(n), Action: ipam.DeleteENI, ENI: "eni-1"}, &ipam.Look{ID: ipam.ID(n)},
				&ipam.Note{Point: ipam.RecoveredKernel, Att: att}}[rnd.below(10)]
			d := c.Clone()
			first := strings.Join(append(c.Input(now, in), c.Effects([]ipam.Effect{eff})...), "\n")
			again := strings.Join(append(d.Input(now, in), d.Effects([]ipam.Effect{eff})...), "\n")
			if first != again {
				t.Fatalf("seed %d: the original says %q, its clone %q", seed, first, again)
			}
		}
	}
}

type dice uint64

func (d *dice) below(n int) int { return int(splitmix.Next(d) % uint64(n)) }

// An outcome of an earlier life may name a Save that this life has not made yet. It is nobody's.
func TestSavedBeyondWhatWasSaved(t *testing.T) {
	c := NewContract()
	var broken []string
	broken = append(broken, c.Input(0, ipam.Start{Settings: ipam.Defaults()})...)
	web := ipam.Attachment{Network: "aws-cni", ContainerID: "web", IfName: "eth0"}
	a := netip.MustParseAddr("10.0.0.7")
	broken = append(broken, c.Input(0, ipam.Add{Req: 1, Att: web})...)
	broken = append(broken, c.Effects([]ipam.Effect{&ipam.Save{Store: ipam.RunStore, Seq: 1, Put: []ipam.Row{{Address: a, State: ipam.Assigned, Att: web}}}})...)
	broken = append(broken, c.Input(0, ipam.Saved{Store: ipam.RunStore, Seq: 2})...)
	if len(broken) > 0 {
		t.Fatal(broken)
	}
	if b := c.Effects([]ipam.Effect{&ipam.Apply{ID: 1, Lane: ipam.Lane{Kind: ipam.PodLane, Att: web}}, &ipam.Reply{Req: 1, Verb: ipam.VerbAdd, Att: web, Address: a}}); len(b) == 0 {
		t.Fatal("a Saved of a Save that was never made counted for the one that was")
	}
}
