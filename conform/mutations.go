package conform

// Mutation is a change to the fakes of this repository that makes a row fail: Old, which is there once, becomes New.
type Mutation struct {
	File     string // below fakes
	Old, New string
}

// Mutations of one row are told apart from those of others where that is possible: what only it would notice.
func ec2Mutations() map[string]Mutation {
	all := map[string]Mutation{}
	for _, part := range [...]map[string]Mutation{
		protocolMutations(), createMutations(), attachMutations(), assignMutations(), describeMutations(), tagMutations(), throttleMutations(),
	} {
		for name, m := range part {
			all[name] = m
		}
	}
	return all
}

// not is the mutation that takes a condition's effect away.
func not(file, condition string) Mutation {
	return Mutation{file, condition, "false && (" + condition + ")"}
}

func protocolMutations() map[string]Mutation {
	return map[string]Mutation{
		"protocol.answer":            {"ec2/server/xml.go", `Response xmlns="http://ec2.amazonaws.com/doc/`, `Response xmlns="http://example.com/doc/`},
		"protocol.request-id":        {"ec2/server/handler.go", "n := h.requests.Add(1)", "n := h.requests.Load()"},
		"protocol.error":             {"ec2/server/handler.go", `"RequestID"`, `"requestId"`},
		"protocol.media-type":        {"ec2/server/handler.go", `"text/xml;charset=UTF-8"`, `"application/xml"`},
		"protocol.get":               {"ec2/server/handler.go", "case http.MethodGet:", "case http.MethodTrace:"},
		"protocol.no-action":         {"ec2/server/call.go", `bad("MissingAction", `, `bad("InvalidQueryParameter", `},
		"protocol.unknown-action":    {"ec2/errors.go", `"InvalidAction"`, `"UnsupportedOperation"`},
		"protocol.action-case":       {"ec2/server/call.go", "ec2.ParseAction(c.action)", "ec2.ParseAction(\"D\" + c.action[1:8] + \"S\" + c.action[9:])"},
		"protocol.no-version":        {"ec2/server/call.go", `case v == "":`, `case v == "none":`},
		"protocol.old-version":       not("ec2/server/call.go", "v != version"),
		"protocol.unknown-parameter": {"ec2/server/call.go", "q.done()", "_ = q"},
		"protocol.boolean":           not("ec2/server/form.go", `ok && v != "true" && v != "false"`),
		"protocol.unsigned": {"ec2/server/signature.go", `return nil, &fault{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	rest, ok`, `return nil, bad("InvalidRequest", "Request is missing Authentication Token")
	}
	rest, ok`},
		"keys.unknown": {"ec2/server/verify.go", `http.StatusUnauthorized, "AuthFailure"`, `http.StatusForbidden, "InvalidAccessKeyId"`},
		"keys.secret":  not("ec2/server/verify.go", "!hmac.Equal([]byte(g.hex), []byte(g.sign(secret, g.canonical(r, query, body))))"),
		"keys.old":     {"ec2/server/verify.go", "signatureLife = 15 * time.Minute", "signatureLife = 45 * time.Minute"},
		"keys.scope":   {"ec2/server/signature.go", `case g.Service != "ec2":`, `case g.Service != "ec2" && g.Service != "s3":`},
	}
}

func createMutations() map[string]Mutation {
	const (
		create = "ec2/create.go"
		eni    = "ec2/eni.go"
		subnet = "ec2/subnet.go"
		prefix = "ec2/prefix.go"
		six    = "ec2/ipv6.go"
		show   = "ec2/describe.go"
		front  = "ec2/server/call.go"
		render = "ec2/server/render.go"
	)
	return map[string]Mutation{
		"create.available":              {eni, "unattached := attachment{instance: none, number: none}", "unattached := attachment{instance: none, number: none, id: \"eni-attach-0\"}"},
		"create.place":                  {show, "VPC: c.vpcs[s.vpc].id, Primary:", "VPC: string(s.id), Primary:"},
		"create.address":                {render, "x.privateAddress(e.Primary, e.Zone, true)", "x.privateAddress(e.Primary, e.Zone, false)"},
		"create.mac":                    {eni, "mac: macOf(c.eniNames.salt, number)", "mac: macOf(c.eniNames.salt, 0)"},
		"create.owner":                  {render, `x.text("ownerId", e.Owner)`, `x.text("ownerId", "amazon")`},
		"create.source-dest-check":      {render, `x.flag("sourceDestCheck", e.SourceDestCheck)`, `x.flag("sourceDestCheck", !e.SourceDestCheck)`},
		"create.described":              {eni, "visibleFrom: c.now,\n", "visibleFrom: c.now + time.Hour,\n"},
		"create.count":                  {create, "make([]uint16, max(1+r.SecondaryCount, len(r.Addresses)))", "make([]uint16, max(r.SecondaryCount, len(r.Addresses), 1))"},
		"create.exact-primary":          {create, "want.list[k] = o\n", "want.list[k] = o + 1\n"},
		"create.exact-list":             {front, "if q.flag(name + \".Primary\") {", "if q.flag(name+\".Primary\") != (len(primary) == 0) {"},
		"create.primary-in-use":         {create, "case why == addressTaken && k == 0:", "case why == addressTaken && k == 1:"},
		"create.secondary-in-use":       {create, "case why == addressTaken && k == 0:", "case why == addressTaken:"},
		"create.outside":                {create, "case !ok:\n\t\treturn 0, \" does not fall within", "case !ok:\n\t\treturn uint16(s.size / 3), \"\"\n\tcase s.size == 0:\n\t\treturn 0, \" does not fall within"},
		"create.network-address":        {create, "case s.ownerOf(o) == addressReserved:", "case s.ownerOf(o) == addressReserved && o == 0:\n\t\treturn o, \"\"\n\tcase s.ownerOf(o) == addressReserved:"},
		"create.router-address":         {create, "case s.ownerOf(o) == addressReserved:", "case s.ownerOf(o) == addressReserved && o == 2:\n\t\treturn o, \"\"\n\tcase s.ownerOf(o) == addressReserved:"},
		"create.broadcast-address":      {subnet, "case int(o) == s.size-1:", "case int(o) == s.size:"},
		"create.not-an-address":         {"ec2/server/form.go", `q.fail(bad("InvalidParameterValue", "Value ("`, `q.fail(bad("InvalidParameter", "Value ("`},
		"create.count-and-list":         {create, "case len(r.Addresses) > 1 && r.kinds4() > 1, ", "case "},
		"create.two-primaries":          {front, "case len(primary) > 1:", "case len(primary) > 2:"},
		"create.unknown-subnet":         {"ec2/errors.go", `"InvalidSubnetID.NotFound"`, `"InvalidSubnet"`},
		"create.no-subnet":              {front, `q.required("SubnetId")`, `q.text("SubnetId") + "subnet-0"`},
		"create.full-subnet":            {"ec2/errors.go", `"InsufficientFreeAddressesInSubnet"`, `"InsufficientAddresses"`},
		"create.all-of-subnet":          {subnet, "s.free = s.size - 1 ", "s.free = s.size - 2 "},
		"create.too-many-addresses":     not(create, "len(r.Addresses) > mostAddresses || r.SecondaryCount >= mostAddresses || prefixes >= mostAddresses"),
		"create.more-than-attach-takes": {create, "const mostAddresses = 50", "const mostAddresses = 30"},
		"create.count-no-number":        {"ec2/server/form.go", "if err != nil || n < least || n > most {", "if err == nil && (n < least || n > most) {"},
		"create.group":                  {create, "return slices.Clone(groups)", "return append(slices.Clone(groups), c.vpcOf(sub).defaultGroup...)"},
		"create.default-group":          {create, "return c.vpcOf(sub).defaultGroup", "return nil"},
		"create.unknown-group":          {"ec2/errors.go", `"InvalidGroup.NotFound"`, `"InvalidGroupId.NotFound"`},
		"create.malformed-group":        {"ec2/errors.go", `"InvalidGroupId.Malformed"`, `"InvalidGroup.NotFound.Form"`},
		"create.too-many-groups":        {create, "const mostGroups = 5", "const mostGroups = 16"},
		"create.foreign-group":          not(create, "c.groups[n].VPC != c.vpcOf(sub).id"),
		"create.description":            {"ec2/server/xml.go", "_ = xml.EscapeText(&buf, []byte(v)) // a Buffer does not fail", "_ = xml.EscapeText(&buf, bytes.ToUpper([]byte(v)))"},
		"create.tags":                   {create, "e.tags = merged(nil, r.Tags)", "e.tags = nil"},
		"create.tags-of-other-kind":     {front, `kind != "network-interface" && kind != ""`, `kind == "vpc"`},
		"create.tags-of-aws":            {create, "if p := checkTags(nil, r.Tags); p.Code != \"\" {", "if p := checkTags(nil, nil); p.Code != \"\" {"},
		"create.token-again":            {create, "if r.ClientToken != \"\" {\n\t\tif p, again", "if r.ClientToken == \"\" {\n\t\tif p, again"},
		"create.token-answer":           {render, `x.option("clientToken", c.req.ClientToken)`, `x.option("clientToken", "")`},
		"create.token-other":            {create, "if use.sum != r.sum() {", "if use.sum == 0 {"},
		"create.no-token":               {front, `c.req.ClientToken = q.text("ClientToken"); len(`, `c.req.ClientToken = q.text("ClientToken") + "x"; len(`},
		"create.token-too-long":         {front, "len(c.req.ClientToken) > 64", "len(c.req.ClientToken) > 128"},
		"create.dry-run":                {"ec2/errors.go", "return 412", "return 200 + 200"},
		"create.count-falls":            {subnet, "s.free--\n", "s.free -= 2\n"},
		"create.prefix":                 {prefix, "o := uint16(b * prefixSize)", "o := uint16(b*prefixSize + 8)"},
		"create.prefix-exact":           {create, "s.takeBlocks(want.prefixes, slot+1)", "want.prefixes, _ = s.chooseBlocks(len(want.prefixes), nil)\n\ts.takeBlocks(want.prefixes, slot+1)"},
		"create.prefix-in-use":          {prefix, "default:\n\t\t\treturn 0, addressTaken", "default:"},
		"create.prefix-unaligned":       {"ec2/server/form.go", "|| p != p.Masked()) {", ") {\n\t\tq.fail(nil)\n\t}\n\tp = p.Masked()\n\tif v != \"\" && err != nil {"},
		"create.prefix-no-block":        {"ec2/errors.go", `"InsufficientCidrBlocks"`, `"InsufficientFreeBlocks"`},
		"create.prefix-and-count":       {create, ", len(r.Addresses) <= 1 && r.kinds4()-len(r.Addresses) > 1:", ":"},
		"create.prefix-of-free":         {subnet, "s.free--\n", "s.free -= int(o) / 16 % 2\n"},
		"create.ipv6":                   {six, "for len(list) < n {\n\t\tlow, found := uint64(0), false", "for len(list) < n-1 {\n\t\tlow, found := uint64(0), false"},
		"create.ipv6-exact":             {six, "out.six = append(out.six, low)", "out.six = append(out.six, low^1<<40)"},
		"create.ipv6-nowhere":           {six, "return chosen6{}, failure(codeValue, \"The subnet '\"", "return chosen6{}, failure(codeState, \"The subnet '\""},
		"create.ipv6-prefix":            {render, `if len(e.IPv6Prefixes) > 0 {`, `if len(e.IPv6Prefixes) > 1 {`},

		"delete.gone":            {create, "c.deleteENI(slot, from)\n\treturn success()", "_ = from\n\treturn success()"},
		"delete.in-use":          not(create, "c.enis[slot].att.status != Available"),
		"delete.while-detaching": {create, "if c.enis[slot].att.status != Available {", "if s := c.enis[slot].att.status; s != Available && s != Detaching {"},
		"delete.twice":           {create, "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn noSuchENI(r.ENI)", "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\tif _, ok := c.eniNames.number(eniPrefix, string(r.ENI), len(c.slots)); ok {\n\t\t\treturn success()\n\t\t}\n\t\treturn noSuchENI(r.ENI)"},
		"delete.unknown":         {create, "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn noSuchENI(r.ENI)", "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn success()"},
		"delete.malformed":       {"ec2/server/form.go", `q.fail(bad(kind+".Malformed", `, `q.fail(bad(kind+".NotFound", `},
		"delete.dry-run":         {front, "case ec2.DeleteNetworkInterface:\n\t\tr.DryRun = q.flag(\"DryRun\")", "case ec2.DeleteNetworkInterface:\n\t\tr.DryRun = q.flag(\"DryRun\") && false"},
		"delete.count-rises":     {eni, "for _, o := range e.current() {\n\t\ts.hold(o, until)", "for _, o := range e.current()[1:] {\n\t\ts.hold(o, until)"},
		"delete.address-again":   {eni, "until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress)\n\tfor _, o := range e.current()", "until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress) + time.Hour\n\tfor _, o := range e.current()"},
	}
}

func attachMutations() map[string]Mutation {
	const (
		attach = "ec2/attach.go"
		show   = "ec2/describe.go"
		front  = "ec2/server/call.go"
		render = "ec2/server/render.go"
		modify = "ec2/modify.go"
		detach = "c.unplug(e, from)\n"
	)
	return map[string]Mutation{
		"attach.attached":              {render, "if s == ec2.InUse {\n\t\treturn \"attached\"", "if s == ec2.InUse {\n\t\treturn \"in-use\""},
		"attach.under-way":             {"ec2/request.go", "case Attaching:\n\t\treturn \"attaching\"", "case Attaching:\n\t\treturn \"pending\""},
		"attach.described":             {show, "DeviceIndex: int(a.device)", "DeviceIndex: int(a.device) + 1"},
		"attach.in-instance":           {"ec2/server/instance.go", "x.attachment(e.Device, ", "x.attachment(e.Device+7, "},
		"attach.kept":                  {attach, "i.enis = c.insertByDevice(i.enis, slot)", "i.enis = c.insertByDevice(i.enis, slot)\n\te.att.deleteOnTermination = true"},
		"attach.index-in-use":          {attach, "if c.enis[slot].att.place() == place {", "if c.enis[slot].att.place() == place && c.enis[slot].att.status != InUse {"},
		"attach.index-zero":            {attach, "if c.enis[slot].att.place() == place {", "if c.enis[slot].att.place() == place && place != 0 {"},
		"attach.index-while-attaching": {attach, "if c.enis[slot].att.place() == place {", "if c.enis[slot].att.place() == place && c.enis[slot].att.status == InUse {"},
		"attach.index-hole":            {attach, "case device < 0 || device >= deviceIndexes:", "case device < 0 || device >= deviceIndexes || card == 0 && device > c.onCard(i, 0):"},
		"attach.twice":                 {"ec2/errors.go", `"InvalidNetworkInterface.InUse"`, `"InvalidParameterCombination.InUse"`},
		"attach.unknown-interface":     {"ec2/errors.go", `"InvalidNetworkInterfaceID.NotFound"`, `"InvalidNetworkInterface.NotFound"`},
		"attach.unknown-instance":      {"ec2/errors.go", `"InvalidInstanceID.NotFound"`, `"InvalidInstance.NotFound"`},
		"attach.malformed-instance":    {"ec2/server/form.go", `q.identifier("InvalidInstanceID", "i-", v)`, `q.identifier("InvalidInstance", "i-", v)`},
		"attach.no-index":              {front, "\tq.required(\"DeviceIndex\")\n\tr.DeviceIndex", "\tr.DeviceIndex"},
		"attach.negative-index":        {front, `r.DeviceIndex = q.number("DeviceIndex", 0, most)`, `r.DeviceIndex = max(9, q.number("DeviceIndex", -9, most))`},
		"attach.too-many":              {attach, "case c.onCard(i, int16(card)) >= i.limits.ENIs:", "case c.onCard(i, int16(card)) > i.limits.ENIs:"},
		"attach.too-many-addresses":    {attach, "e.places() > i.limits.IPv4PerENI:", "e.places() > i.limits.IPv4PerENI+1:"},
		"attach.all-addresses":         {attach, "e.places() > i.limits.IPv4PerENI:", "e.places() >= i.limits.IPv4PerENI:"},
		"attach.too-many-prefixes":     {attach, "e.places() > i.limits.IPv4PerENI:", "len(e.current()) > i.limits.IPv4PerENI:"},
		"attach.other-zone":            {attach, "case c.subnets[e.subnet].zone != c.subnets[i.subnet].zone:", "case c.subnets[e.subnet].zone == \"\":"},
		"attach.card":                  {attach, "card: int16(r.NetworkCard)", "card: 0"},
		"attach.no-such-card":          {attach, "case card < 0 || card >= max(i.limits.Cards, 1):", "case card < 0:"},
		"attach.dry-run":               {front, "r.DryRun = q.flag(\"DryRun\")\n\tc.interfaceID(q)\n\tr.Instance", "r.DryRun = q.flag(\"DryRun\") && false\n\tc.interfaceID(q)\n\tr.Instance"},

		"detach.available":       {attach, "c.attached[e.att.number] = none\n", "c.attached[e.att.number] = none\n\tif i.state == running {\n\t\treturn\n\t}\n"},
		"detach.under-way":       {"ec2/request.go", "case Detaching:\n\t\treturn \"detaching\"", "case Detaching:\n\t\treturn \"leaving\""},
		"detach.keeps-addresses": {attach, detach, detach + "\tc.setAddresses(e, e.current()[:1], 0)\n"},
		"detach.frees-index":     {attach, "if e.forced {\n\t\ti.burned", "if !e.forced {\n\t\ti.burned"},
		"detach.new-attachment":  {"ec2/eni.go", "return c.attachmentNames.name(attachmentPrefix, n)", "return c.attachmentNames.name(attachmentPrefix, n-n+int(slot))"},
		"detach.not-in-instance": {attach, "i.enis = without(i.enis, slot)\n\tc.attached[e.att.number] = none\n\te.epoch++\n\te.hung, e.forced = false, false\n\tc.setAttachment(at, e, attachment{instance: none,", "c.attached[e.att.number] = none\n\te.epoch++\n\te.hung, e.forced = false, false\n\tc.setAttachment(at, e, attachment{instance: e.att.instance,"},
		"detach.primary":         {attach, "case slot == i.primary:", "case slot == i.primary && r.Force:"},
		"detach.twice":           {attach, "c.attached[e.att.number] = none\n", "_ = none\n"},
		"detach.unknown":         {"ec2/errors.go", `"InvalidAttachmentID.NotFound"`, `"InvalidAttachment.NotFound"`},
		"detach.no-attachment":   {front, `r.Attachment = q.required("AttachmentId")`, `r.Attachment = q.text("AttachmentId") + "-"`},
		"detach.dry-run":         {front, "case ec2.DetachNetworkInterface:\n\t\tr.DryRun = q.flag(\"DryRun\")", "case ec2.DetachNetworkInterface:\n\t\tr.DryRun = q.flag(\"DryRun\") && false"},

		"modify.description":           {modify, "e.description = r.Description // \"\" clears it", "_ = r.Description"},
		"modify.no-description":        {modify, "e.description = r.Description // \"\" clears it", "e.description = r.Description + e.description"},
		"modify.groups":                {modify, "e.groups = c.groupsOr(e.subnet, r.SecurityGroups)", "e.groups = append(e.groups[:1:1], r.SecurityGroups...)"},
		"modify.unknown-group":         {modify, "if p := c.checkGroups(e.subnet, r.SecurityGroups); p.Code != \"\" {", "if p := c.checkGroups(e.subnet, nil); p.Code != \"\" {"},
		"modify.source-dest-check":     {modify, "e.unchecked = !r.SourceDestCheck", "e.unchecked = r.SourceDestCheck"},
		"modify.delete-on-termination": {modify, "a.deleteOnTermination = r.DeleteOnTermination", "a.deleteOnTermination = false"},
		"modify.unknown-attachment":    not(modify, "c.attachmentSlot(r.Attachment) != slot"),
		"modify.two":                   {front, `q.fail(bad("InvalidParameterCombination", "Fields for`, `q.fail(bad("InvalidParameterValue", "Fields for`},
		"modify.none":                  {modify, "return failure(codeCombination, \"No attributes specified.\")", "return success()"},
		"modify.unknown":               {modify, "if slot == none {\n\t\treturn noSuchENI(r.ENI)", "if slot == none {\n\t\treturn success()"},
		"modify.dry-run":               {front, "r.DryRun = q.flag(\"DryRun\")\n\tc.interfaceID(q)\n\tgiven", "r.DryRun = q.flag(\"DryRun\") && false\n\tc.interfaceID(q)\n\tgiven"},
	}
}

func assignMutations() map[string]Mutation {
	const (
		address = "ec2/address.go"
		prefix  = "ec2/prefix.go"
		six     = "ec2/ipv6.go"
		render  = "ec2/server/render.go"
	)
	return map[string]Mutation{
		"assign.count":         {address, "p.Assigned[k] = s.addr(o)", "p.Assigned[k] = s.addr(o + 1)"},
		"assign.again":         {address, "n := r.SecondaryCount + len(r.Addresses)", "r.SecondaryCount = max(0, r.SecondaryCount+1-len(e.current()))\n\tn := r.SecondaryCount + len(r.Addresses)"},
		"assign.exact":         {address, "list = append(list, o)\n\t}\n\tif s.free < n-s.asideOf", "list = append(list, o+1)\n\t}\n\tif s.free < n-s.asideOf"},
		"assign.not-primary":   {render, "x.privateAddress(a, e.Zone, false)", "x.privateAddress(a, e.Zone, true)"},
		"assign.in-use":        {"ec2/subnet.go", "return owner == addressFree || owner == addressSetAside", "return owner >= addressFree || owner == addressSetAside"},
		"assign.others":        {address, "case r.AllowReassignment && len(r.Addresses) > 0:", "case len(r.Addresses) > 0:"},
		"assign.reassign":      {address, "case r.AllowReassignment && len(r.Addresses) > 0:", "case r.Force && len(r.Addresses) > 0:"},
		"assign.outside":       {"ec2/create.go", "case !ok:\n\t\treturn 0, \" does not fall within", "case !ok:\n\t\treturn uint16(s.size / 3), \"\"\n\tcase s.size == 0:\n\t\treturn 0, \" does not fall within"},
		"assign.reserved":      {"ec2/create.go", "case s.ownerOf(o) == addressReserved:", "case s.ownerOf(o) == addressReserved && o == 1:\n\t\treturn o, \"\"\n\tcase s.ownerOf(o) == addressReserved:"},
		"assign.all-or-none":   {address, "if why != \"\" {\n\t\t\treturn failure(codeValue, \"Address \"+a.String()+why)\n\t\t}\n\t\tlist = append(list, o)\n\t}\n\tif s.free", "if why != \"\" {\n\t\t\tcontinue\n\t\t}\n\t\tlist = append(list, o)\n\t}\n\tn = len(list) - len(old)\n\tif s.free"},
		"assign.both":          {address, "if kinds := r.kinds4(); kinds != 1 {", "if kinds := r.kinds4(); kinds == 0 || kinds > 2 {"},
		"assign.neither":       {address, "if kinds == 0 {\n\t\t\treturn missing(", "if kinds == 0 {\n\t\t\treturn success()\n\t\t}\n\t\tif kinds < 0 {\n\t\t\treturn missing("},
		"assign.unknown":       {address, "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn noSuchENI(r.ENI)\n\t}\n\tif kinds", "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn success()\n\t}\n\tif kinds"},
		"assign.limit":         {address, "if n > mostAddresses || e.places()+n > c.addressLimit(e) {", "if n > mostAddresses {"},
		"assign.up-to-limit":   {address, "if n > mostAddresses || e.places()+n > c.addressLimit(e) {", "if n > mostAddresses || e.places()+n >= c.addressLimit(e) {"},
		"assign.full-subnet":   {"ec2/errors.go", `"InsufficientFreeAddressesInSubnet"`, `"InsufficientAddresses"`},
		"assign.prefix":        {prefix, "p.Prefixes = append(p.Prefixes, s.prefix(o))", "p.Prefixes = append(p.Prefixes, s.prefix(o+prefixSize))"},
		"assign.prefix-exact":  {prefix, "s.takeBlocks(list, slot+1)\n\tx := e.extra()", "if len(r.Prefixes) > 0 {\n\t\tlist, _ = s.chooseBlocks(n, nil)\n\t}\n\ts.takeBlocks(list, slot+1)\n\tx := e.extra()"},
		"assign.prefix-limit":  {prefix, "if n > mostAddresses || e.places()+n > c.addressLimit(e) {", "if n > mostAddresses {"},
		"assign.inside-prefix": {"ec2/subnet.go", "return owner == addressFree || owner == addressSetAside", "return owner >= addressFree || owner == addressSetAside"},
		"assign.ipv6":          {six, "p.Assigned = append(p.Assigned, s.addr(low))", "p.Assigned = append(p.Assigned, s.addr(low+1))"},
		"assign.ipv6-exact":    {six, "out.six = append(out.six, low)", "out.six = append(out.six, low^1<<40)"},
		"assign.ipv6-in-use":   {six, "case owner != addressFree:\n\t\treturn 0, addressTaken", "case owner < addressFree:\n\t\treturn 0, addressTaken"},
		"assign.ipv6-outside":  {six, "switch owner := s.ownerOf(low); {\n\tcase !ok:", "switch owner := s.ownerOf(low); {\n\tcase !ok && low == 0:"},
		"assign.ipv6-nowhere":  {six, "return chosen6{}, failure(codeValue, \"The subnet '\"", "return chosen6{}, failure(codeState, \"The subnet '\""},
		"assign.ipv6-prefix":   {render, `plain(x, prefixes, p)`, `plain(x, prefixes, p[:0])`},

		"unassign.one":           {address, "list = slices.Delete(list, at, at+1)\n\t}\n\tc.removeAddresses", "list = slices.Delete(list, len(list)-1, len(list))\n\t}\n\tc.removeAddresses"},
		"unassign.primary":       {address, "case at == 0:\n\t\t\treturn failure(codeValue, \"The primary", "case at == 0:\n\t\t\treturn success()\n\t\tcase at == -2:\n\t\t\treturn failure(codeValue, \"The primary"},
		"unassign.foreign":       {address, "case !ok || at < 0:\n\t\t\treturn failure", "case !ok || at < 0:\n\t\t\tif r.Force {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\treturn success()\n\t\tcase at == -2:\n\t\t\treturn failure"},
		"unassign.twice":         {address, "case !ok || at < 0:\n\t\t\treturn failure", "case !ok || at < 0:\n\t\t\tif r.Force {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\treturn success()\n\t\tcase at == -2:\n\t\t\treturn failure"},
		"unassign.all-or-none":   {address, "case !ok || at < 0:\n\t\t\treturn failure", "case !ok || at < 0:\n\t\t\tc.removeAddresses(e, list, r.Addresses[:1], from)\n\t\t\treturn failure"},
		"unassign.none":          {address, "case len(r.Addresses) == 0:\n\t\treturn missing(", "case len(r.Addresses) == 0:\n\t\treturn success()\n\tcase r.Force:\n\t\treturn missing("},
		"unassign.unknown":       {address, "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn noSuchENI(r.ENI)\n\t}\n\tswitch {\n\tcase len", "slot := c.find(from, r.ENI)\n\tif slot == none {\n\t\treturn success()\n\t}\n\tswitch {\n\tcase len"},
		"unassign.prefix":        {prefix, "x.prefixes = list\n", "_ = list\n"},
		"unassign.inside-prefix": {address, "case !ok || at < 0:\n\t\t\treturn failure", "case !ok || at < 0:\n\t\t\tif r.Force {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\treturn success()\n\t\tcase at == -2:\n\t\t\treturn failure"},
		"unassign.ipv6":          {render, `x.sixes(&c.req, "unassignedIpv6Addresses", c.req.IPv6,`, `x.sixes(&c.req, "unassignedIpv6Addresses", nil,`},
		"unassign.ipv6-foreign":  {six, "if !ok || at < 0 {\n\t\t\treturn failure(codeValue, \"Some of the specified addresses", "if !ok || at < 0 {\n\t\t\treturn success()\n\t\t}\n\t\tif at < -2 {\n\t\t\treturn failure(codeValue, \"Some of the specified addresses"},
	}
}

func describeMutations() map[string]Mutation {
	const (
		show   = "ec2/describe.go"
		filter = "ec2/server/filter.go"
		values = "ec2/server/values.go"
		page   = "ec2/server/page.go"
		front  = "ec2/server/call.go"
		render = "ec2/server/render.go"
	)
	return map[string]Mutation{
		"describe.by-id":                {show, "for _, id := range r.ENIs {", "for _, id := range r.ENIs[:1] {"},
		"describe.one-unknown":          {show, "if slot == none {\n\t\t\t\treturn noSuchENI(id)", "if slot == none && len(r.ENIs) > 1 {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tif slot == none {\n\t\t\t\treturn noSuchENI(id)"},
		"describe.malformed":            {"ec2/server/form.go", `q.fail(bad(kind+".Malformed", `, `q.fail(bad(kind+".NotFound", `},
		"describe.nothing":              {page, "p.ENIs, f = page(c, keep(p.ENIs, c.filters, c.eniValues))", "if len(p.ENIs) == 0 {\n\t\t\treturn bad(\"InvalidNetworkInterfaceID.NotFound\", \"none\")\n\t\t}\n\t\tp.ENIs, f = page(c, keep(p.ENIs, c.filters, c.eniValues))"},
		"describe.filter-tag":           {values, "case t.Key == key:", "case t.Key != key:"},
		"describe.filter-tag-key":       {values, "out = append(out, t.Key)", "out = append(out, t.Value)"},
		"describe.filter-status":        {values, "return one(statusOf(e)), true", "return one(attachmentStatus(e.Status)), true"},
		"describe.filter-instance":      {values, "v = string(e.Instance)", "v = e.Attachment"},
		"describe.filter-device":        {values, "v = strconv.Itoa(e.DeviceIndex)", "v = strconv.Itoa(e.NetworkCard)"},
		"describe.filter-address":       {values, "return append(one(text(e.Primary)), texts(e.Secondaries)...), true", "return one(text(e.Primary)), true"},
		"describe.filter-mac":           {values, "return one(e.MAC), true", "return one(strings.ToUpper(e.MAC)), true"},
		"describe.filter-group":         {values, "return e.SecurityGroups, true", "return one(\"default\"), true"},
		"describe.filter-description":   {filter, "case c == '?' || ", "case "},
		"describe.filter-case":          {filter, "if glob(pattern, v) {", "if glob(strings.ToLower(pattern), strings.ToLower(v)) {"},
		"describe.filter-values":        {filter, "for _, pattern := range f.values {", "for _, pattern := range f.values[:1] {"},
		"describe.filters":              {filter, "for _, f := range filters {\n\t\t\thave", "for _, f := range filters[len(filters)-1:] {\n\t\t\thave"},
		"describe.filter-and-id":        {page, "page(c, keep(p.ENIs, c.filters, c.eniValues))", "page(c, keep(p.ENIs, c.filters[min(len(c.filters), len(c.req.ENIs)):], c.eniValues))"},
		"describe.unknown-filter":       {filter, `f.name != "" && !c.filterable(f.name)`, `f.name == "-"`},
		"describe.filter-without-value": {filter, "case len(f.values) == 0:", "case len(f.values) > maxFilterValues:"},
		"describe.pages":                {page, "strconv.Itoa(from+size)", "strconv.Itoa(from+size+1)"},
		"describe.small-pages":          {front, `q.number("MaxResults", 5, pageMost)`, `q.number("MaxResults", 1, pageMost)`},
		"describe.large-pages":          {front, `q.number("MaxResults", 5, pageMost)`, `q.number("MaxResults", 5, 2*pageMost)`},
		"describe.pages-by-id":          {front, `if len(list) > 0 && (c.max > 0 || c.token != "") {`, `if len(list) > 0 && c.token != "" {`},
		"describe.bad-token":            {page, "if !ok {\n\t\treturn nil, bad(\"InvalidPaginationToken\"", "if !ok {\n\t\treturn list, nil\n\t}\n\tif from < 0 {\n\t\treturn nil, bad(\"InvalidPaginationToken\""},
		"describe.dry-run":              {front, "c.req.DryRun = q.flag(\"DryRun\")\n\tc.filters", "c.req.DryRun = q.flag(\"DryRun\") && false\n\tc.filters"},

		"subnets.by-id":          {render, "x.text(\"state\", \"available\")\n\tx.text(\"ownerId\", c.account)\n\tx.text(\"vpcId\", s.VPC)", "x.text(\"state\", \"pending\")\n\tx.text(\"ownerId\", c.account)\n\tx.text(\"vpcId\", s.VPC)"},
		"subnets.unknown":        {"ec2/errors.go", `"InvalidSubnetID.NotFound"`, `"InvalidSubnet"`},
		"subnets.in-vpc":         {render, `x.text("cidrBlock", s.CIDR.String())`, `x.text("cidrBlock", s.CIDR.Addr().String()+"/8")`},
		"subnets.count":          {"ec2/subnet.go", "s.free = s.size - 1 ", "s.free = s.size "},
		"subnets.filter-vpc":     {values, "case \"vpc-id\":\n\t\treturn one(s.VPC), true", "case \"vpc-id\":\n\t\treturn one(string(s.ID)), true"},
		"vpcs.by-id":             {render, `x.text("cidrBlock", v.CIDRs[0].String())`, `x.text("cidrBlock", v.CIDRs[len(v.CIDRs)-1].String())`},
		"vpcs.unknown":           {"ec2/errors.go", `"InvalidVpcID.NotFound"`, `"InvalidVpc.NotFound"`},
		"groups.unknown":         {"ec2/errors.go", `"InvalidGroup.NotFound"`, `"InvalidGroupId.NotFound"`},
		"groups.default":         {values, "case \"group-name\":\n\t\treturn one(g.Name), true", "case \"group-name\":\n\t\treturn one(g.ID), true"},
		"groups.by-id":           {"ec2/group.go", "p.Groups = append(p.Groups, c.groups[n])", "p.Groups = append(p.Groups, c.groups[n], c.groups[n])"},
		"instances.by-id":        {"ec2/server/instance.go", "return 16", "return 17"},
		"instances.unknown":      {"ec2/errors.go", `"InvalidInstanceID.NotFound"`, `"InvalidInstance.NotFound"`},
		"instances.malformed":    {"ec2/server/form.go", `q.identifier("InvalidInstanceID", "i-", v)`, `q.identifier("InvalidInstance", "i-", v)`},
		"instances.filter-state": {values, "return one(i.State), true", "return one(\"stopped\"), true"},
		"types.limits":           {"ec2/server/instance.go", `x.number("ipv6AddressesPerInterface", t.IPv6PerENI)`, `x.number("ipv6AddressesPerInterface", t.IPv6PerENI-1)`},
		"types.cards":            {"ec2/types.go", `{"p4d.24xlarge", 4, 15, 50,`, `{"p4d.24xlarge", 2, 15, 50,`},
		"types.unknown":          {"ec2/errors.go", `"InvalidInstanceType"`, `"InvalidType"`},
		"types.filter":           {values, "return one(t.Name), true", "return one(\"c5.\" + t.Name), true"},
	}
}

func tagMutations() map[string]Mutation {
	const (
		tags  = "ec2/tags.go"
		run   = "ec2/run.go"
		cloud = "ec2/cloud.go"
		front = "ec2/server/call.go"
	)
	return map[string]Mutation{
		"tags.create":             {tags, "*tags = merged(*tags, r.Tags)", "_ = merged(*tags, r.Tags)"},
		"tags.overwrite":          {tags, "out[i].Value = t.Value\n\t\t\t\tcontinue next", "continue next"},
		"tags.several":            {tags, "for k := range r.targets() {\n\t\ttags := c.tagsOf(r.target(k))\n\t\t*tags = merged", "for k := range 1 {\n\t\ttags := c.tagsOf(r.target(k))\n\t\t*tags = merged"},
		"tags.one-unknown":        {tags, "tags, p := c.tagsFor(from, r.target(k))\n\t\tif p.Code != \"\" {\n\t\t\treturn p", "tags, p := c.tagsFor(from, r.target(k))\n\t\tif p.Code != \"\" && k > 0 {\n\t\t\treturn success()\n\t\t}\n\t\tif p.Code != \"\" {\n\t\t\treturn p"},
		"tags.no-such-kind":       {front, `q.fail(bad("InvalidID", `, `q.fail(bad("UnsupportedOperation", `},
		"tags.none":               {tags, "return missing(\"tagSet\")", "return success()"},
		"tags.of-aws":             {tags, "reservedStart = \"aws:\"", "reservedStart = \"amazon:\""},
		"tags.too-many":           {tags, "mostTags      = 50", "mostTags      = 60"},
		"tags.as-many":            {tags, "mostTags      = 50", "mostTags      = 49"},
		"tags.delete":             {tags, "if t.Key == key {\n\t\t\t\tcontinue next", "if t.Key == key && t.Value == \"\" {\n\t\t\t\tcontinue next"},
		"tags.delete-value":       {tags, "if t == gone {", "if t.Key == gone.Key && t.Value != gone.Value {"},
		"tags.delete-other-value": {tags, "if t == gone {", "if t.Key == gone.Key {"},
		"tags.dry-run":            {front, "r.DryRun = q.flag(\"DryRun\")\n\tc.resources(q)\n\tr.Tags", "r.DryRun = q.flag(\"DryRun\") && false\n\tc.resources(q)\n\tr.Tags"},

		"run.running":             {run, "i.state, i.was = c.now, c.now, pending, pending", "i.state, i.was = c.now, c.now, running, running"},
		"run.count":               {run, "return min(r.MaxCount, mostInstances, ", "return min(r.MinCount, mostInstances, "},
		"run.min-above-max":       {"ec2/server/run.go", "r.MaxCount < r.MinCount {\n\t\tq.fail(", "r.MaxCount < r.MinCount {\n\t\tr.MaxCount = r.MinCount\n\t}\n\tif r.MaxCount < 0 {\n\t\tq.fail("},
		"run.token-again":         {run, "if p, again := c.ranBefore(r); again {", "if p, again := c.ranBefore(r); again && p.Code != \"\" {"},
		"run.token-other":         {run, "if use.sum != r.runSum() {", "if use.sum == 0 {"},
		"run.tags":                {run, "i.image, i.tags = r.Image, merged(nil, r.Tags)", "i.image = r.Image"},
		"run.unknown-subnet":      {run, "if sub == none {\n\t\treturn noSuchSubnet(r.Subnet)", "if sub == none {\n\t\treturn failure(codeValue, \"subnet\")"},
		"run.dry-run":             {"ec2/server/run.go", `r.DryRun = q.flag("DryRun")`, `r.DryRun = q.flag("DryRun") && false`},
		"terminate.state":         {"ec2/server/instance.go", `x.state("previousState", s.Previous)`, `x.state("previousState", s.Current)`},
		"terminate.takes-primary": {run, "status: Attaching, deleteOnTermination: true", "status: Attaching"},
		"terminate.leaves-others": {cloud, "remove := e.att.deleteOnTermination", "remove := true"},
		"terminate.takes-marked":  {cloud, "remove := e.att.deleteOnTermination", "remove := slot == i.primary"},
		"terminate.twice":         {"ec2/server/instance.go", `x.state("currentState", s.Current)`, `x.state("currentState", "shutting-down")`},
		"terminate.no-attach":     {"ec2/attach.go", "case i.state != running:\n\t\treturn failure(codeInstanceState,", "case i.state != running:\n\t\treturn failure(codeValue,"},
		"terminate.unknown":       {"ec2/errors.go", `"InvalidInstanceID.NotFound"`, `"InvalidInstance.NotFound"`},
		"reboot.unknown":          {"ec2/errors.go", `"InvalidInstanceID.NotFound"`, `"InvalidInstance.NotFound"`},
		"reboot.running":          {"ec2/serve.go", "case RebootInstances:\n\t\treturn c.reboot(from, r)", "case RebootInstances:\n\t\treturn failure(codeInstanceState, \"\")"},
	}
}

func throttleMutations() map[string]Mutation {
	const config = "ec2/config.go"
	const listed = "CreateNetworkInterface, DeleteNetworkInterface, ModifyNetworkInterfaceAttribute, AssignPrivateIpAddresses,"
	all := map[string]Mutation{
		"throttle.create-tags":  {config, "case CreateTags, DeleteTags:\n\t\treturn Bucket{100, 10}", "case CreateTags, DeleteTags:\n\t\treturn Bucket{120, 10}"},
		"throttle.delete-tags":  {config, "case CreateTags, DeleteTags:", "case CreateTags:"},
		"throttle.describe":     {config, "return Bucket{100, 20}", "return Bucket{120, 20}"},
		"throttle.describe-all": {config, "case a.describes() && unfiltered:\n\t\treturn Bucket{50, 10}", "case a.describes() && unfiltered:\n\t\treturn Bucket{100, 20}"},
		"throttle.run":          {config, "return Bucket{5, 2}", "return Bucket{50, 5}"},
		"throttle.refill":       {"ec2/bucket.go", "l.spent -= elapsed * int64(b.RefillPerSecond)", "l.spent -= elapsed * int64(b.RefillPerSecond) / 2"},
		"throttle.by-action":    {"ec2/bucket.go", "return &c.buckets[r.Action], c.cfg.Throttle.Action[r.Action]", "return &c.buckets[0], c.cfg.Throttle.Action[r.Action]"},
		"throttle.create":       {config, listed, "DeleteNetworkInterface, ModifyNetworkInterfaceAttribute, AssignPrivateIpAddresses,"},
		"throttle.delete":       {config, listed, "CreateNetworkInterface, ModifyNetworkInterfaceAttribute, AssignPrivateIpAddresses,"},
		"throttle.modify":       {config, listed, "CreateNetworkInterface, DeleteNetworkInterface, AssignPrivateIpAddresses,"},
		"throttle.terminate":    {config, "UnassignPrivateIpAddresses, AssignIpv6Addresses, TerminateInstances:", "UnassignPrivateIpAddresses, AssignIpv6Addresses:"},
		"throttle.attach":       {config, listed, "AttachNetworkInterface, " + listed},
		"throttle.detach":       {config, listed, "DetachNetworkInterface, " + listed},
	}
	return all
}

func imdsMutations() map[string]Mutation {
	const (
		token   = "imds/server/token.go"
		handler = "imds/server/handler.go"
		get     = "imds/get.go"
		tree    = "imds/tree.go"
		texts   = "imds/texts.go"
	)
	return map[string]Mutation{
		"token.made":       {token, "Text: h.seal(", "Text: \"token: \" + h.seal("},
		"token.ttl-answer": {token, "w.Header().Set(ttlHeader, strconv.Itoa(ttl))", "_ = strconv.Itoa(ttl)"},
		"token.longest":    {token, "maxTTL = 21600", "maxTTL = 21599"},
		"token.shortest":   {token, "ttl < 1 ||", "ttl < 2 ||"},
		"token.too-long":   {token, "maxTTL = 21600", "maxTTL = 86400"},
		"token.zero":       {token, "ttl < 1 ||", "ttl < 0 ||"},
		"token.no-ttl":     {token, "if len(sent) != 1 {", "if len(sent) == 0 {\n\t\tsent = []string{\"60\"}\n\t}\n\tif len(sent) != 1 {"},
		"token.no-number":  {token, "if err != nil || ttl < 1", "if err != nil {\n\t\tttl = 60\n\t}\n\tif ttl < 1"},
		"token.forwarded":  {handler, "case h.Disabled, forwarded:", "case h.Disabled, forwarded && !put:"},
		"token.differ":     {token, "h.seal(h.Now()+time.Duration(ttl)*time.Second, id)", "h.seal((h.Now()+time.Duration(ttl)*time.Second).Truncate(time.Hour), id)"},
		"token.expires":    {token, "return left, left > 0", "return left, left > -time.Hour"},

		"read.token":         {handler, "if !ok {\n\t\treturn http.StatusUnauthorized", "if ok {\n\t\treturn http.StatusUnauthorized"},
		"read.no-token":      {handler, "if len(sent) != 1 {\n\t\treturn http.StatusUnauthorized", "if len(sent) != 1 {\n\t\treturn http.StatusForbidden"},
		"read.made-up-token": {token, "if len(token) != tokenLength {", "if len(token) == tokenLength {\n\t\treturn time.Hour, true\n\t}\n\tif len(token) != tokenLength {"},
		"read.changed-token": not(token, "!hmac.Equal(b, h.sum(b[:8:8], id))"),
		"read.head":          {handler, "r.Method != http.MethodGet && r.Method != http.MethodHead", "r.Method != http.MethodGet"},
		"read.post":          {handler, "r.Method != http.MethodGet && r.Method != http.MethodHead", "r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost"},
		"read.delete":        {handler, "r.Method != http.MethodGet && r.Method != http.MethodHead", "r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodDelete"},
		"read.put":           {handler, "r.Method != http.MethodGet && r.Method != http.MethodHead", "r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPut"},
		"read.get-token":     {handler, "case r.URL.Path == tokenPath:\n", "case r.URL.Path == tokenPath && r.Method != http.MethodGet:\n"},
		"read.nothing":       {get, "if n = n.child(&p, name); n == nil {\n\t\t\treturn Reply{Status: notFound}", "if n = n.child(&p, name); n == nil {\n\t\t\treturn Reply{Status: found, Type: plain}"},
		"read.below-leaf":    {get, "if n = n.child(&p, name); n == nil {", "if c := n.child(&p, name); c != nil {\n\t\t\tn = c\n\t\t} else if n.value == nil {"},
		"read.no-version":    {get, "if !Version(version) {", "if version == \"\" {"},

		"tree.folders":         {get, "names = append(names, c.name+\"/\")", "names = append(names, c.name)"},
		"tree.no-line-break":   {get, "return strings.Join(names, \"\\n\")\n}\n\n// visible", "return strings.Join(names, \"\\n\") + \"\\n\"\n}\n\n// visible"},
		"tree.without-slash":   {get, "r.Text = n.listing(p)\n\t\tok = r.Text != \"\"", "r.Text = n.listing(p)\n\t\tok = r.Text != \"\" && slash"},
		"tree.listed-is-there": {get, "_, ok := n.value(p)\n\t\treturn ok", "return true"},
		"tree.text":            {get, `plain  = "text/plain"`, `plain  = "text/html"`},
		"tree.versions":        {get, `"2021-01-03", "2021-03-23",`, `"2021-01-03", "2021-03-24",`},
		"tree.dated":           {get, `"2021-01-03", "2021-03-23",`, `"2021-01-03", "2021-03-24",`},
		"tree.instance-id":     {tree, `return string(p.Instance.ID) })`, `return "i" + string(p.Instance.ID) })`},
		"tree.instance-type":   {tree, `return p.Instance.Type })`, `return "m5" })`},
		"tree.zone":            {tree, `return p.Instance.Zone })`, `return "a" })`},
		"tree.local-hostname":  {texts, `return "ip-" + `, `return "ip" + `},
		"tree.life-cycle":      {texts, `return "on-demand"`, `return "normal"`},
		"tree.services":        {texts, "return \"amazonaws.com\"\n", "return \"example.com\"\n"},
		"tree.security-groups": {tree, `some("security-groups", "", (*place).primaryGroups)`, `is("security-groups", "", "none of these")`},
		"tree.instance-action": {tree, `is("instance-action", "2008-09-01", "none")`, `is("instance-action", "2008-09-01", "")`},

		"macs.listed":            {tree, "list[i] = p.ENIs[i].MAC", "list[i] = string(p.ENIs[i].ENI)"},
		"macs.form":              {tree, "return e.MAC })", "return strings.ToUpper(e.MAC) })"},
		"macs.unknown":           {tree, "if p.ENIs[i].MAC == name {", "if p.ENIs[i].MAC == name || name == \"02:00:00:00:00:00\" {"},
		"macs.device-number":     {tree, "return strconv.Itoa(e.Device) })", "return strconv.Itoa(e.Device + 1) })"},
		"macs.different-numbers": {tree, "return strconv.Itoa(e.Device) })", "return strconv.Itoa(e.Card) })"},
		"macs.interface-id":      {tree, "return string(e.ENI) })", "return e.MAC })"},
		"macs.local-ipv4s":       {tree, "return lines(e.Addresses) })", "return lines(e.Addresses[1:]) })"},
		"macs.subnet":            {tree, "return e.SubnetCIDR.String() })", "return \"192.0.2.0/24\" })"},
		"macs.subnet-id":         {tree, "return string(e.Subnet) })", "return e.SubnetCIDR.String() })"},
		"macs.vpc-cidrs":         {tree, "return lines(p.Instance.VPCCIDRs) })", "return lines(p.Instance.VPCCIDRs[1:]) })"},
		"macs.vpc-id":            {tree, "return p.Instance.VPC })", "return \"vpc\" })"},
		"macs.owner":             {tree, "return p.owner() })", "return \"amazon\" })"},
		"macs.groups":            {tree, "return lines(e.Groups) })", "return lines(e.Groups) + \"\\nsg-0\" })"},
		"macs.one-card":          {tree, "return l.Cards > 1 || ", "return l.Cards > 0 || "},
		"macs.prefixes":          {tree, "return lines(p.eni.Prefixes) })", "return \"192.0.2.0/28\" })"},
		"macs.ipv6s":             {tree, "return lines(p.eni.IPv6) })", "return \"2001:db8::1\" })"},
		"macs.no-ipv6s":          {get, "r.Text, ok = n.value(p)", "r.Text, _ = n.value(p)"},

		"document.instance":     {texts, "PrivateIP: i.PrimaryAddress.String()", "PrivateIP: i.PrimaryAddress.Next().String()"},
		"document.version":      {texts, `"2017-09-30"`, `"2020-01-01"`},
		"document.architecture": {texts, "architecture = t.Arch", "architecture = \"amd\" + t.Arch"},
		"document.listing":      {tree, `signature("rsa2048", RSA2048)`, `signature("rsa4096", RSA2048)`},
		"iam.credentials":       {texts, "stamp(p.Updated), \"AWS-HMAC\", key, SecretKey(key), SessionToken(p.Instance.ID), stamp(p.Expires)})\n}\n\n// identityCredentials", "stamp(p.Updated), \"AWS-HMAC\", key, SecretKey(key), SessionToken(p.Instance.ID), stamp(p.Updated)})\n}\n\n// identityCredentials"},
		"iam.no-such-role":      {tree, "return name != \"\" && name == p.Role", "return name != \"\""},
		"spot.no-notice":        {texts, "if p.Interruption == nil {\n\t\treturn \"\"", "if p.Interruption == nil {\n\t\treturn \"none\""},
		"tags.not-shown":        {get, "ok = r.Text != \"\"", "ok = true"},
		"user-data.none":        {tree, `return p.UserData, p.UserData != ""`, `return p.UserData, true`},
	}
}
