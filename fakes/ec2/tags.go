package ec2

import (
	"strings"
	"unicode/utf8"
)

// "Tag restrictions": tags of a resource, and characters of a key and of a value.
const (
	mostTags      = 50
	longestKey    = 128
	longestValue  = 256
	reservedStart = "aws:"
)

// targets is how many resources a CreateTags or DeleteTags names; target is the k-th of them.
func (r *Request) targets() int {
	n := len(r.ENIs) + len(r.Resources)
	if r.ENI != "" {
		n++
	}
	return n
}

func (r *Request) target(k int) string {
	if k < len(r.ENIs) {
		return string(r.ENIs[k])
	}
	k -= len(r.ENIs)
	if r.ENI != "" {
		if k == 0 {
			return string(r.ENI)
		}
		k--
	}
	return r.Resources[k]
}

// createTags sets tags on resources: all or none.
func (c *Cloud) createTags(from int32, r *Request) Response {
	switch {
	case r.targets() == 0:
		return missing("resourceIdSet")
	case len(r.Tags) == 0:
		return missing("tagSet")
	}
	for k := range r.targets() {
		tags, p := c.tagsFor(from, r.target(k))
		if p.Code != "" {
			return p
		}
		if p := checkTags(*tags, r.Tags); p.Code != "" {
			return p
		}
	}
	for k := range r.targets() {
		tags := c.tagsOf(r.target(k))
		*tags = merged(*tags, r.Tags)
	}
	return success()
}

// deleteTags removes tags from resources: those with a key and a value, those with a key whatever the value, or all when none are named.
// A tag that is not there is no error (DeleteTags).
func (c *Cloud) deleteTags(from int32, r *Request) Response {
	if r.targets() == 0 {
		return missing("resourceIdSet")
	}
	for _, t := range r.Tags {
		if p := checkKey(t.Key); p.Code != "" {
			return p
		}
	}
	for _, key := range r.TagKeys {
		if p := checkKey(key); p.Code != "" {
			return p
		}
	}
	for k := range r.targets() {
		if _, p := c.tagsFor(from, r.target(k)); p.Code != "" {
			return p
		}
	}
	for k := range r.targets() {
		tags := c.tagsOf(r.target(k))
		*tags = r.remaining(*tags)
	}
	return success()
}

// remaining is a new list of what a DeleteTags leaves.
func (r *Request) remaining(have []Tag) []Tag {
	if len(r.Tags)+len(r.TagKeys) == 0 {
		return nil
	}
	var out []Tag
next:
	for _, t := range have {
		for _, gone := range r.Tags {
			if t == gone {
				continue next
			}
		}
		for _, key := range r.TagKeys {
			if t.Key == key {
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}

// TagOf is a tag as DescribeTags shows it.
type TagOf struct {
	Tag
	Resource string
	Kind     string // as "network-interface": what the API calls the type of the resource
}

// describeTags lists the tags of all that a replica knows: interfaces, instances, subnets, VPCs, groups, each from the
// oldest.
func (c *Cloud) describeTags(from int32, r *Request) Response {
	at := c.readAt(from, r.Action)
	p := success()
	add := func(kind, id string, tags []Tag) {
		for _, t := range tags {
			p.Tags = append(p.Tags, TagOf{t, id, kind})
		}
	}
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		if e := &c.enis[slot]; e.known(at) {
			add("network-interface", string(e.id), e.tags)
		}
	}
	for n := range c.instances {
		if c.knownInstance(int32(n), at) {
			add("instance", string(c.instances[n].id), c.instances[n].tags)
		}
	}
	for k := range c.subnets {
		if c.subnets[k].known(at) {
			add("subnet", string(c.subnets[k].id), c.subnets[k].tags)
		}
	}
	for k := range c.vpcs {
		add("vpc", c.vpcs[k].id, c.vpcs[k].tags)
	}
	for k := range c.groups {
		add("security-group", c.groups[k].ID, c.groups[k].Tags)
	}
	return p
}

// tagsFor is tagsOf for a call that changes something, with what EC2 answers when there is no such resource.
func (c *Cloud) tagsFor(from int32, id string) (*[]Tag, Response) {
	switch kindOf(id) {
	case eniPrefix:
		if c.find(from, ENIID(id)) == none {
			return nil, noSuchENI(ENIID(id))
		}
	case instancePrefix:
		if c.findInstance(from, InstanceID(id)) == none {
			return nil, noSuchInstance(InstanceID(id))
		}
	case subnetPrefix:
		if c.subnetIndex(SubnetID(id)) == none {
			return nil, noSuchSubnet(SubnetID(id))
		}
	case vpcPrefix:
		if c.vpcKnown(id) == none {
			return nil, noSuchVPC(id)
		}
	case groupPrefix:
		if c.groupNamed(id) == none {
			return nil, noSuchGroup(id)
		}
	default:
		return nil, failure(codeID, "The ID '"+id+"' is not valid")
	}
	return c.tagsOf(id), Response{}
}

// tagsOf is where a resource that exists keeps its tags.
func (c *Cloud) tagsOf(id string) *[]Tag {
	switch kindOf(id) {
	case eniPrefix:
		return &c.enis[c.slotOf(ENIID(id))].tags
	case instancePrefix:
		return &c.instances[c.instanceIndex(InstanceID(id))].tags
	case subnetPrefix:
		return &c.subnets[c.subnetIndex(SubnetID(id))].tags
	case vpcPrefix:
		return &c.vpcs[c.vpcNamed(id)].tags
	}
	return &c.groups[c.groupNamed(id)].Tags
}

// kindOf is the prefix of the resources that can be tagged, "" for an identifier that is none.
func kindOf(id string) string {
	for _, prefix := range [...]string{eniPrefix, instancePrefix, subnetPrefix, vpcPrefix, groupPrefix} {
		if strings.HasPrefix(id, prefix) {
			return prefix
		}
	}
	return ""
}

func checkKey(key string) Response {
	switch {
	case key == "":
		return missing("tagSet.key")
	case len(key) >= len(reservedStart) && strings.EqualFold(key[:len(reservedStart)], reservedStart):
		return failure(codeValue, "Tag keys starting with 'aws:' are reserved for internal use")
	case len(key) > longestKey && utf8.RuneCountInString(key) > longestKey:
		return failure(codeValue, "Tag key exceeds the maximum length of 128 characters")
	}
	return Response{}
}

// checkTags refuses keys that are empty, too long, twice there or AWS's own, values that are too long, and more tags than a resource may have.
func checkTags(have, more []Tag) Response {
	for k, t := range more {
		if p := checkKey(t.Key); p.Code != "" {
			return p
		}
		if len(t.Value) > longestValue && utf8.RuneCountInString(t.Value) > longestValue {
			return failure(codeValue, "Tag value exceeds the maximum length of 256 characters")
		}
		for _, o := range more[:k] {
			if o.Key == t.Key {
				return failure(codeValue, "Duplicate tag key '"+t.Key+"' specified.")
			}
		}
	}
	if len(have)+len(more) > mostTags && len(merged(have, more)) > mostTags {
		return failure(codeTagLimit, "You have reached the maximum number of tags for a resource.")
	}
	return Response{}
}

// merged is a new list with more's values over have's, in order of first appearance.
func merged(have, more []Tag) []Tag {
	out := make([]Tag, len(have), len(have)+len(more))
	copy(out, have)
next:
	for _, t := range more {
		for i := range out {
			if out[i].Key == t.Key {
				out[i].Value = t.Value
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}
