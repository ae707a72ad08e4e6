package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// words is how the story tells a mark. In both texts # stands for the ENI; many has the number in it.
type words struct {
	one, many string
	why       bool // what the daemon says about it is told too
}

// marked are the marks that the story tells of. The others happen all the time, or another line tells the same: the call that EC2 refused, the
// request that got an error.
var marked = map[ipam.Point]words{
	ipam.RuntimeListRefused:  {one: "the runtime's list is not believed", why: true},
	ipam.RecoveredCheckpoint: {"address taken over from the record", "%d addresses taken over from the record", false},
	ipam.RecoveredKernel:     {"address recovered from the kernel", "%d addresses recovered from the kernel", false},
	ipam.RecoveredRuntime:    {"address recovered from the runtime's list", "%d addresses recovered from the runtime's list", false},
	ipam.CheckpointUnread:    {one: "the records cannot be read and are rebuilt", why: true},
	ipam.AddressVetoed:       {"address not free after its cool-down", "%d addresses not free after their cool-down", true},
	ipam.AddressQuarantined:  {"address quarantined", "%d addresses quarantined", true},
	ipam.QuarantineEnded:     {"address out of quarantine: nothing uses it any more", "%d addresses out of quarantine: nothing uses them any more", false},
	ipam.AddWaited:           {"ADD served after it waited for an address", "%d ADDs served after they waited for an address", false},
	ipam.AddUndone:           {"ADD undone: nobody waits for it any more", "%d ADDs undone: nobody waits for them any more", false},
	ipam.Displaced:           {one: "an older sandbox of the pod gives up the name of its host veth"},
	ipam.ReapedSandbox:       {"address released: its sandbox is gone", "%d addresses released: their sandboxes are gone", false},
	ipam.DriftRepaired:       {one: "drift repaired", why: true},
	ipam.ResidueRemoved:      {"something that belonged to nobody removed from the kernel", "%d things that belonged to nobody removed from the kernel", false},
	ipam.CallLost:            {one: "EC2's answer about # has not come"},
	ipam.IntentResumed:       {"an earlier daemon's intent carried on", "%d intents of an earlier daemon carried on", false},
	ipam.ENIDeleted:          {one: "# is gone"},
	ipam.ENISwept:            {one: "# was leaked and is swept"},
	ipam.ENIMissing:          {one: "# is missing"},
	ipam.DrainStopped:        {one: "# is needed and is not given back"},
	ipam.AddressAdopted:      {"address that nobody had recorded found on #", "%d addresses that nobody had recorded found on #", false},
	ipam.AddressMissing:      {"address is no longer on its ENI, as EC2 says", "%d addresses are no longer on their ENI, as EC2 says", false},
	ipam.GCReleased:          {"attachment released by GC", "%d attachments released by GC", false},
	ipam.GCRefused:           {"attachment kept, though GC does not list it", "%d attachments kept, though GC does not list them", true},
	ipam.SaveFailed:          {one: "a record could not be written", why: true},
	ipam.MACUnrecorded:       {"the MAC of a host veth is taken for right: nothing says what it was", "the MACs of %d host veths are taken for right: nothing says what they were", false},
	ipam.Restored:            {one: "# attached again"},
	ipam.ENIGivenUp:          {one: "# is not attached and is deleted", why: true},
	ipam.FlowsKept:           {one: "conntrack does not forget the flows of released addresses, which are withheld"},
	ipam.ServedFromRecords:   {one: "what is on record is served, for metadata does not answer"},
	ipam.ENINotOurs:          {one: "# is not ours and is left alone", why: true},
	ipam.SubnetsDenied:       {one: "the role may not ask for subnets", why: true},
	ipam.GroupsChanged:       {one: "# is given the security groups of the primary ENI"},
	ipam.ENIExcluded:         {one: "# is in a subnet that is not for pods any more"},
	ipam.PrefixesGone:        {one: "EC2 has no prefix to give: addresses are asked for", why: true},
	ipam.SlotsTurned:         {one: "slots of # that the mode does not use are about to be given back"},
	ipam.TypeWithoutPrefixes: {one: "this instance type has no prefixes", why: true},
	ipam.ConfigChanged:       {one: "the node's ENIConfig has changed", why: true},
	ipam.AddressesAdded:      {one: "a pod has added addresses to itself, which other pods get all the same"},
}

// Note tells what a daemon found worth a note.
func (s *Timeline) Note(at time.Duration, node int32, e *ipam.Note) {
	switch {
	case e.Point == ipam.ENIMade:
		s.Add(at, node, s.inService(node, e.ENI))
		return
	case e.Point == ipam.GCRefused && e.Att == (ipam.Attachment{}): // the request's own line says so
		return
	case e.Point == ipam.IntentResumed && e.ENI != "":
		s.enis[s.index(e.ENI)].resumed = true
	}
	w, told := marked[e.Point]
	if !told {
		return
	}
	if e.Point == ipam.ENISwept {
		w.one = "# was leaked by " + strings.TrimPrefix(e.Text, "of ") + " and is swept"
	}
	one, why := s.about(w.one, e.ENI), ""
	if w.why && e.Warn && e.Text != "" {
		why = ": " + s.ordinals(e.Text)
	}
	s.add(at, node, one+why, s.several(w.many, e.ENI, why))
}

// about puts the ENI into a text: where # stands, or behind it.
func (s *Timeline) about(text, id string) string {
	name := "an ENI"
	if id != "" {
		name = s.ENI(id)
	}
	switch {
	case strings.Contains(text, "#"):
		return strings.Replace(text, "#", name, 1)
	case id != "":
		return text + " (" + name + ")"
	}
	return text
}

// several is about for many; nothing stays nothing.
func (s *Timeline) several(many, id, why string) string {
	if many == "" {
		return ""
	}
	return s.about(many, id) + strings.ReplaceAll(why, "%", "%%")
}

// Refused tells that a plugin's request got an error: what that means for the caller, and why. The reason has no names
// in it, so that the same again is one line.
func (s *Timeline) Refused(at time.Duration, node int32, r *ipam.Reply) {
	if r.Err == nil {
		return
	}
	said := "refused"
	switch r.Err.Code {
	case ipam.CodeTryAgain:
		said = "told to retry"
		if r.Verb == ipam.VerbDel {
			said = "left for later"
		}
	case ipam.CodeIO:
		said = "failed"
	case ipam.CodeDrifted:
		said = "found drift"
	}
	rest := fmt.Sprintf(" %s: %s", said, reason(r.Err.Text))
	s.add(at, node, r.Verb.String()+rest, "%d "+r.Verb.String()+"s"+strings.ReplaceAll(rest, "%", "%%"))
}

// reasons are why requests get errors: what the error's text has in it, and how the story says it.
var reasons = [...][2]string{
	{"no address:", "no free address"},
	{"could not be made durable", "the record could not be written"},
	{"is recovering or another GC runs", "ipamd is recovering, or another GC runs"},
	{"requests wait already", "too many requests wait"},
	{"ipamd is stopping", "ipamd is stopping"},
	{"a DEL of the same attachment came", "a DEL of the same attachment came meanwhile"},
	{"did not end in time", "the work on it did not end in time"},
	{"its earlier address", "its earlier address is quarantined"},
	{"in another network namespace", "the attachment has an address in another network namespace"},
	{"of the local protocol", "the plugin speaks another version than ipamd"},
	{"too long for a link's alias", "the attachment's name is too long for a link's alias"},
	{"setting up the namespace failed", "the namespace could not be set up"},
	{"valid-attachments is missing", "it has no list of valid attachments"},
}

// reason is an error's text as one of few. What no entry knows is what follows the subject: "cni add SUBJECT: ".
func reason(text string) string {
	const recovering = "still recovering: "
	if _, what, yes := strings.Cut(text, recovering); yes {
		end := len(what)
		for _, stop := range [...]string{" yet", ":", ";"} {
			if i := strings.Index(what, stop); i >= 0 {
				end = min(end, i)
			}
		}
		return "ipamd is " + recovering + what[:end]
	}
	for _, r := range reasons {
		if strings.Contains(text, r[0]) {
			return r[1]
		}
	}
	if _, why, yes := strings.Cut(text, ": "); yes {
		return why
	}
	return text
}
