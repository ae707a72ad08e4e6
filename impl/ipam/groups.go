package ipam

import (
	"slices"
	"strings"
	"time"
)

// groupsPause is between two questions about an ENI of which EC2 has not said the security groups, or whose it alone says.
const groupsPause = 10 * time.Minute

// hears takes EC2's word on an ENI's security groups; none is no word, and that of before this daemon has changed them is an old one.
func (e *eni) hears(now time.Duration, groups []string) {
	if len(groups) == 0 || e.GivenAt > 0 && now < e.GivenAt+rememberedFor {
		return
	}
	if len(e.Groups) == 0 {
		e.GroupsAt = 0 // it was when to ask for them
	}
	e.Groups = groups
}

// regroup gives each ENI that has other security groups those of the primary one, which metadata says. EC2 says what each has when it is asked
// about it, so one that a third party changes is noticed at a daemon's start, as the primary's are within a look at
// metadata. An ENI that its answers left out, for they were of before it was made, is asked about by itself. One to which EC2 refuses the groups
// goes on with those that it has.
func (dr *driver) regroup(now time.Duration) {
	if dr.Deaf || !dr.Surveyed || !dr.enis.keepsGroups() {
		return
	}
	why := ""
	for i := range dr.enis.ENIs {
		e := &dr.enis.ENIs[i]
		if e.Stage != Ready || e.Device == 0 && !dr.enis.overruled() {
			continue
		}
		if len(e.Groups) == 0 || e.Device == 0 {
			if !e.Asking && now >= e.GroupsAt {
				e.GroupsAt = now + groupsPause
				dr.enis.ask(int32(i), now+askPause)
			}
			continue
		}
		if !dr.policy.Regroup(e.Groups, dr.enis.primarysGroups()) {
			continue
		}
		if e.GroupsAt != 0 {
			why = e.ID + " has other security groups than the primary network interface: EC2 refuses to change them"
		}
		switch {
		case e.Wait != idle || e.busy() || e.Trimming || e.Lost || e.Asking || e.Stored: // one thing at a time
		case now < e.GroupsAt:
			dr.pool.Warm.At = min(dr.pool.Warm.At, e.GroupsAt)
		default:
			e.Doing, e.Next = GroupENI, now
		}
	}
	dr.trouble(troubleGroups, why)
}

// groupsRefused: EC2 may not know a security group any more that metadata, which can be behind by a long time, still names. Both are asked again;
// what EC2 has said of the primary ENI earlier may be long out of date.
func (dr *driver) groupsRefused(now time.Duration, r *Result, groups []string) {
	dr.evidence.want(LookIMDS, max(now, dr.evidence.Looks[LookIMDS].At+askPause))
	e := dr.enis.primary()
	if e == nil || r.Class != NotFound || !strings.Contains(r.Code, "Group") || !slices.Equal(groups, dr.enis.Grouped) {
		return
	}
	dr.enis.Gone, e.Groups = slices.Clone(groups), nil
	if ix, known := dr.enis.eniByID(e.ID); known {
		dr.enis.ask(ix, now)
	}
}

// primarysGroups are the security groups of the primary ENI: metadata's word, or EC2's where it knows none of that name.
func (es *enis) primarysGroups() []string {
	if e := es.primary(); e != nil && len(e.Groups) > 0 && es.overruled() {
		return e.Groups
	}
	return es.Grouped
}

// overruled says whether metadata names a group that EC2 does not know.
func (es *enis) overruled() bool { return len(es.Gone) > 0 && slices.Equal(es.Gone, es.Grouped) }

// regroupLater ends a try that EC2 refused, so that nothing else of the ENI waits for the next one. Some answers may come after the deed, and
// which groups the ENI has is not known then.
func (dr *driver) regroupLater(ix int32, c Class) {
	e := &dr.enis.ENIs[ix]
	if c == Unavailable || c == Throttled {
		e.Groups = nil
	}
	e.GroupsAt = e.Next
	dr.atRest(ix)
}

// grouped is of how many ENIs this daemon keeps, or will keep, the security groups current. Custom networking makes ENIs with an ENIConfig's, and
// amazon-vpc-cni-k8s 1.23.0 leaves them what they were made with (pkg/awsutils/awsutils.go, RefreshSGIDs).
func (es *enis) grouped() (count int) {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; es.keepsGroups() && e.Stage <= Ready && e.Device != 0 && len(e.Groups) > 0 {
			count++
		}
	}
	return count
}

// keepsGroups says whether it would, if there were an ENI whose groups are known.
func (es *enis) keepsGroups() bool {
	return !es.Set.NoProvisioning && !es.Set.IMDSOnly && !es.Set.CustomNetwork && len(es.Grouped) > 0
}
