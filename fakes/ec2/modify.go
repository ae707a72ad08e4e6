package ec2

// attributes are the fields of a Modify, by the attribute they belong to.
func (r *Request) attributes() (given [AttributeSourceDestCheck + 1]bool, n int) {
	given[AttributeDescription] = r.Description != "" || r.Attribute == AttributeDescription
	given[AttributeGroups] = len(r.SecurityGroups) > 0 || r.Attribute == AttributeGroups
	given[AttributeAttachment] = r.Attachment != "" || r.Attribute == AttributeAttachment
	given[AttributeSourceDestCheck] = r.SourceDestCheck || r.Attribute == AttributeSourceDestCheck
	for _, is := range given {
		if is {
			n++
		}
	}
	return given, n
}

// modify changes one attribute: the description, the groups, DeleteOnTermination of an attachment, or SourceDestCheck. ("You can specify
// only one attribute at a time", ModifyNetworkInterfaceAttribute.)
func (c *Cloud) modify(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	e := &c.enis[slot]
	given, n := r.attributes()
	switch {
	case r.Attribute > AttributeSourceDestCheck:
		return failure(codeValue, "Unknown attribute")
	case n == 0:
		return failure(codeCombination, "No attributes specified.")
	case n > 1:
		return failure(codeCombination, "Fields for multiple attribute types specified")
	case given[AttributeDescription]:
		e.description = r.Description // "" clears it
	case given[AttributeGroups]:
		if len(r.SecurityGroups) == 0 {
			return missing("securityGroupId")
		}
		if p := c.checkGroups(e.subnet, r.SecurityGroups); p.Code != "" {
			return p
		}
		c.setGroups(e, r.SecurityGroups, from)
	case given[AttributeAttachment]:
		return c.modifyAttachment(slot, r)
	default:
		e.unchecked = !r.SourceDestCheck
	}
	return success()
}

func (c *Cloud) modifyAttachment(slot int32, r *Request) Response {
	if r.Attachment == "" {
		return missing("attachment.attachmentId")
	}
	if c.attachmentSlot(r.Attachment) != slot {
		return noSuchAttachment(r.Attachment)
	}
	e := &c.enis[slot]
	a := e.att
	a.deleteOnTermination = r.DeleteOnTermination
	c.setAttachment(c.now, e, a)
	return success()
}
