package ec2

import "strings"

// mostTags is the number of tags that a resource may have ("Tag restrictions").
const mostTags = 50

// createTags sets tags on interfaces: all or none.
func (c *Cloud) createTags(from int32, r *Request) Response {
	ids := r.ENIs
	if r.ENI != "" {
		ids = append(ids[:len(ids):len(ids)], r.ENI)
	}
	switch {
	case len(ids) == 0:
		return missing("resourceIdSet")
	case len(r.Tags) == 0:
		return missing("tagSet")
	}
	for _, id := range ids {
		slot := c.find(from, id)
		if slot == none {
			return noSuchENI(id)
		}
		if p := checkTags(c.enis[slot].tags, r.Tags); p.Code != "" {
			return p
		}
	}
	for _, id := range ids {
		e := &c.enis[c.slotOf(id)]
		e.tags = merged(e.tags, r.Tags)
	}
	return success()
}

// checkTags refuses keys that are empty or AWS's own, and more tags than a resource may have.
func checkTags(have, more []Tag) Response {
	for _, t := range more {
		if t.Key == "" {
			return missing("tagSet.key")
		}
		if strings.HasPrefix(strings.ToLower(t.Key), "aws:") {
			return failure(codeValue, "Tag keys starting with 'aws:' are reserved for internal use")
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
