package conform

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sources of the metadata service's rows.
const (
	howToIMDS  = "Use the Instance Metadata Service to access instance metadata"
	accessIMDS = "Access instance metadata for an EC2 instance"
	options    = "Configure the Instance Metadata Service options"
	categories = "Instance metadata categories"
	document   = "Instance identity documents"
	byRole     = "Retrieve security credentials from instance metadata"
	spotNotice = "Spot Instance interruption notices"
	tagsIMDS   = "View tags for your EC2 instances using instance metadata"
	hostnames  = "Amazon EC2 instance hostname types"
)

const (
	tokenPath   = "/latest/api/token"
	tokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	meta        = "/latest/meta-data/"
)

// request sends one request: headers are pairs.
func (t *try) request(verb, path string, headers ...string) *answer {
	if t.err != nil {
		return &answer{}
	}
	h := http.Header{}
	for k := 0; k+1 < len(headers); k += 2 {
		h[headers[k]] = append(h[headers[k]], headers[k+1])
	}
	a, err := t.roundTrip(t.ctx, &http.Request{Method: verb, URL: t.url(path), Header: h})
	if err != nil {
		t.differ("%s %s: expected an answer, found: %v", verb, path, err)
		return &answer{}
	}
	return a
}

// status compares an answer's status with those separated by "|".
func (t *try) status(what string, a *answer, codes string) *answer {
	if t.err == nil && !slices.Contains(strings.Split(codes, "|"), strconv.Itoa(a.Status)) {
		t.differ("%s: expected status %s, found %d", what, codes, a.Status)
	}
	return a
}

// token is a fresh one.
func (t *try) token() string {
	return t.status("PUT "+tokenPath, t.request(http.MethodPut, tokenPath, ttlHeader, "60"), "200").Body
}

// read is a GET with a token.
func (t *try) read(path string) *answer {
	return t.request(http.MethodGet, path, tokenHeader, t.token())
}

// text is what a path says that has to be there.
func (t *try) text(path string) string { return t.status("GET "+path, t.read(path), "200").Body }

// optional is what a path says that not every instance has; why says what it is that the instance lacks.
func (t *try) optional(path, why string) string {
	a := t.read(path)
	if t.err == nil && a.Status == http.StatusNotFound {
		t.skip("%s is a 404: %s", path, why)
	}
	return t.status("GET "+path, a, "200").Body
}

// matches compares with a regular expression that has to match the whole text.
func (t *try) matches(path, text, pattern string) {
	t.holds(regexp.MustCompile(`\A(?:`+pattern+`)\z`).MatchString(text), "%s: expected something like %s, found %s", path, pattern, quote(text))
}

// listed says whether a folder's listing names an entry.
func listed(listing, name string) bool { return slices.Contains(strings.Split(listing, "\n"), name) }

func tokenRows() []Row {
	put := "PUT " + tokenPath
	ttl := func(name, when, want string, headers ...string) Row {
		return Row{Name: name, Call: put, When: when, Want: want, Source: howToIMDS, run: func(t *try) {
			t.status(put+" with "+when, t.request(http.MethodPut, tokenPath, headers...), want)
		}}
	}
	return []Row{
		{Name: "token.made", Call: put, When: "a TTL of 60 seconds", Want: "200, a text of one line", Source: howToIMDS, run: func(t *try) {
			token := t.token()
			t.holds(len(token) >= 16 && !strings.ContainsAny(token, " \r\n"), "token: expected one line, found %s", quote(token))
		}},
		{Name: "token.ttl-answer", Call: put, When: "a TTL of 60 seconds", Want: "it is in the answer's header", Source: howToIMDS, run: func(t *try) {
			t.is(ttlHeader, t.request(http.MethodPut, tokenPath, ttlHeader, "60").Header.Get(ttlHeader), "60")
		}},
		ttl("token.longest", "a TTL of 21600 seconds", "200", ttlHeader, "21600"),
		ttl("token.shortest", "a TTL of one second", "200", ttlHeader, "1"),
		ttl("token.too-long", "a TTL of 21601 seconds", "400", ttlHeader, "21601"),
		ttl("token.zero", "a TTL of 0", "400", ttlHeader, "0"),
		ttl("token.no-ttl", "no TTL", "400"),
		ttl("token.no-number", "a TTL that is no number", "400", ttlHeader, "long"),
		ttl("token.forwarded", "X-Forwarded-For", "403", ttlHeader, "60", "X-Forwarded-For", "192.0.2.1"),
		{Name: "token.differ", Call: put, When: "twice", Want: "two tokens, both good", Source: howToIMDS, run: func(t *try) {
			a := t.token()
			_ = t.Sleep(t.ctx, time.Second)
			b := t.token()
			t.holds(t.err != nil || a != b, "tokens: expected two that differ, found one twice")
			for _, token := range []string{a, b} {
				t.status("GET with either", t.request(http.MethodGet, meta, tokenHeader, token), "200")
			}
		}},
		{Name: "token.expires", Call: "GET /latest/meta-data/", When: "a token of one second, three seconds later", Want: "401", Source: howToIMDS, run: func(t *try) {
			token := t.request(http.MethodPut, tokenPath, ttlHeader, "1").Body
			_ = t.Sleep(t.ctx, 3*time.Second)
			t.status("GET with an expired token", t.request(http.MethodGet, meta, tokenHeader, token), "401")
		}},
	}
}

func refusalRows() []Row {
	get := "GET " + meta
	return []Row{
		{Name: "read.token", Call: get, When: "a good token", Want: "200", Source: howToIMDS, run: func(t *try) {
			t.status(get, t.read(meta), "200")
		}},
		{Name: "read.no-token", Call: get, When: "no token", Want: "401, where tokens are required (HttpTokens)", Source: options, run: func(t *try) {
			a := t.request(http.MethodGet, meta)
			if a.Status == http.StatusOK {
				t.skip("the instance answers without tokens: HttpTokens is optional")
			}
			t.status(get+" without token", a, "401")
		}},
		{Name: "read.made-up-token", Call: get, When: "a token that nobody gave out", Want: "401", Source: howToIMDS, run: func(t *try) {
			t.status(get+" with a token of our own", t.request(http.MethodGet, meta, tokenHeader, strings.Repeat("A", 55)+"="), "401")
		}},
		{Name: "read.changed-token", Call: get, When: "a good token with one letter changed", Want: "401", Source: howToIMDS, run: func(t *try) {
			token := []byte(t.token())
			if k := len(token) / 2; k > 0 {
				token[k] = map[bool]byte{true: 'B', false: 'A'}[token[k] == 'A']
			}
			t.status(get+" with a token that was changed", t.request(http.MethodGet, meta, tokenHeader, string(token)), "401")
		}},
		{Name: "read.head", Call: "HEAD " + meta, When: "a good token", Want: "200 and no body", Source: accessIMDS, run: func(t *try) {
			a := t.status("HEAD", t.request(http.MethodHead, meta, tokenHeader, t.token()), "200")
			t.is("body", a.Body, "")
		}},
		{Name: "read.post", Call: "POST " + meta, When: "a good token", Want: "405", Source: accessIMDS, run: func(t *try) {
			t.status("POST", t.request(http.MethodPost, meta, tokenHeader, t.token()), "405")
		}},
		{Name: "read.delete", Call: "DELETE " + meta, When: "a good token", Want: "405", Source: accessIMDS, run: func(t *try) {
			t.status("DELETE", t.request(http.MethodDelete, meta, tokenHeader, t.token()), "405")
		}},
		{Name: "read.put", Call: "PUT " + meta, When: "a path other than the token's", Want: "405|403", Source: howToIMDS, run: func(t *try) {
			t.status("PUT", t.request(http.MethodPut, meta, ttlHeader, "60", tokenHeader, t.token()), "405|403")
		}},
		{Name: "read.get-token", Call: "GET " + tokenPath, When: "the verb GET", Want: "405", Source: howToIMDS, run: func(t *try) {
			t.status("GET "+tokenPath, t.read(tokenPath), "405")
		}},
		{Name: "read.nothing", Call: "GET /latest/meta-data/no-such-thing", When: "a category that does not exist", Want: "404", Source: accessIMDS, run: func(t *try) {
			t.status("GET", t.read(meta+"no-such-thing"), "404")
		}},
		{Name: "read.below-leaf", Call: "GET /latest/meta-data/mac/x", When: "a path below a value", Want: "404", Source: accessIMDS, run: func(t *try) {
			t.status("GET", t.read(meta+"mac/x"), "404")
		}},
		{Name: "read.value-with-slash", Call: "GET /latest/meta-data/mac/", When: "a slash behind a value", Want: "the value", Source: "amazon-vpc-cni-k8s 1.5.3, pkg/awsutils: metadataAZ", run: func(t *try) {
			t.status("GET", t.read(meta+"mac/"), "200")
		}},
		{Name: "read.no-version", Call: "GET /1999-01-01/meta-data/", When: "a version that never was", Want: "404", Source: accessIMDS, run: func(t *try) {
			t.status("GET", t.read("/1999-01-01/meta-data/"), "404")
		}},
	}
}

func treeRows() []Row {
	get := "GET " + meta
	return []Row{
		{Name: "tree.folders", Call: get, When: "a listing", Want: "folders with a slash, values without", Source: categories, run: func(t *try) {
			list := t.text(meta)
			for _, name := range []string{"network/", "placement/", "services/", "instance-id", "mac", "local-ipv4"} {
				t.holds(listed(list, name), "listing: expected %s, found %s", name, quoteAll(strings.Split(list, "\n")))
			}
		}},
		{Name: "tree.no-line-break", Call: get, When: "a listing and a value", Want: "no line break at the end", Source: "aws/amazon-ec2-metadata-mock", run: func(t *try) {
			for _, path := range []string{meta, meta + "mac"} {
				t.holds(!strings.HasSuffix(t.text(path), "\n"), "%s: expected no line break at the end, found one", path)
			}
		}},
		{Name: "tree.without-slash", Call: "GET /latest/meta-data", When: "a folder without its slash", Want: "the same listing", Source: accessIMDS, run: func(t *try) {
			t.is("listing", t.text("/latest/meta-data"), t.text(meta))
		}},
		{Name: "tree.listed-is-there", Call: get, When: "every value that is listed", Want: "200", Source: categories, run: func(t *try) {
			token := t.token()
			for name := range strings.SplitSeq(t.text(meta), "\n") {
				t.status("GET "+meta+name, t.request(http.MethodGet, meta+name, tokenHeader, token), "200")
			}
		}},
		{Name: "tree.text", Call: "GET /latest/meta-data/mac", When: "a value", Want: "Content-Type text/plain", Source: accessIMDS, run: func(t *try) {
			kind := t.read(meta + "mac").Header.Get("Content-Type")
			t.holds(strings.HasPrefix(kind, "text/plain"), "Content-Type: expected text/plain, found %s", quote(kind))
		}},
		{Name: "tree.versions", Call: "GET /", When: "the root", Want: "latest, and dated versions", Source: accessIMDS, run: func(t *try) {
			list := t.text("/")
			t.holds(listed(list, "latest") && listed(list, "2021-03-23"), "listing: expected latest and 2021-03-23 among others, found %s", quoteAll(strings.Split(list, "\n")))
		}},
		{Name: "tree.dated", Call: "GET /2021-03-23/meta-data/instance-id", When: "a dated version", Want: "the same value as under latest", Source: accessIMDS, run: func(t *try) {
			t.is("instance-id", t.text("/2021-03-23/meta-data/instance-id"), t.text(meta+"instance-id"))
		}},
		{Name: "tree.instance-id", Call: get + "instance-id", When: "any instance", Want: "i- and 17 or 8 hexadecimal digits", Source: categories, run: func(t *try) {
			t.matches("instance-id", t.text(meta+"instance-id"), "i-([0-9a-f]{17}|[0-9a-f]{8})")
		}},
		{Name: "tree.instance-type", Call: get + "instance-type", When: "any instance", Want: "family.size", Source: categories, run: func(t *try) {
			t.matches("instance-type", t.text(meta+"instance-type"), `[a-z0-9-]+\.[a-z0-9-]+`)
		}},
		{Name: "tree.zone", Call: get + "placement/availability-zone", When: "any instance", Want: "the region and a letter", Source: categories, run: func(t *try) {
			t.matches("availability-zone", t.text(meta+"placement/availability-zone"), regexp.QuoteMeta(t.text(meta+"placement/region"))+"(-[a-z0-9-]+)?[a-z]")
		}},
		{Name: "tree.local-hostname", Call: get + "local-hostname", When: "any instance", Want: "a name of the private address or the instance", Source: hostnames, run: func(t *try) {
			name := t.text(meta + "local-hostname")
			byAddress := "ip-" + strings.ReplaceAll(t.text(meta+"local-ipv4"), ".", "-") + "."
			t.holds(strings.HasPrefix(name, byAddress) || strings.HasPrefix(name, t.text(meta+"instance-id")+"."), "local-hostname: expected %s…, found %s", byAddress, quote(name))
		}},
		{Name: "tree.life-cycle", Call: get + "instance-life-cycle", When: "any instance", Want: "on-demand, spot, scheduled or capacity-block", Source: categories, run: func(t *try) {
			t.matches("instance-life-cycle", t.text(meta+"instance-life-cycle"), "on-demand|spot|scheduled|capacity-block")
		}},
		{Name: "tree.services", Call: get + "services/", When: "any instance", Want: "domain and partition of AWS", Source: categories, run: func(t *try) {
			t.matches("services/domain", t.text(meta+"services/domain"), `amazonaws\.com(\.cn)?`)
			t.matches("services/partition", t.text(meta+"services/partition"), "aws(-cn|-us-gov|-iso[a-z-]*)?")
		}},
		{Name: "tree.security-groups", Call: get + "security-groups", When: "any instance", Want: "the primary interface's group names", Source: categories, run: func(t *try) {
			t.is("security-groups", t.text(meta+"security-groups"), t.text(t.primary()+"security-groups"))
		}},
		{Name: "tree.instance-action", Call: get + "instance-action", When: "any instance", Want: "none, shutdown or bundle-pending", Source: categories, run: func(t *try) {
			t.matches("instance-action", t.text(meta+"instance-action"), "none|shutdown|bundle-pending")
		}},
	}
}

// primary is the folder of the primary interface.
func (t *try) primary() string { return meta + "network/interfaces/macs/" + t.text(meta+"mac") + "/" }

func macRows() []Row {
	get := "GET " + meta + "network/interfaces/macs/"
	const macs = meta + "network/interfaces/macs/"
	inCIDR := func(t *try, what, address, cidr string) {
		a, bad := netip.ParseAddr(address)
		p, err := netip.ParsePrefix(cidr)
		t.holds(bad == nil && err == nil && p.Contains(a), "%s: expected an address of %s, found %s", what, quote(cidr), quote(address))
	}
	return []Row{
		{Name: "macs.listed", Call: get, When: "the primary interface", Want: "its MAC, with a slash", Source: categories, run: func(t *try) {
			list := t.text(macs)
			t.holds(listed(list, t.text(meta+"mac")+"/"), "listing: expected %s/, found %s", t.text(meta+"mac"), quoteAll(strings.Split(list, "\n")))
		}},
		{Name: "macs.form", Call: get + "MAC/mac", When: "the primary interface", Want: "six pairs of lower case digits", Source: categories, run: func(t *try) {
			mac := t.text(t.primary() + "mac")
			t.holds(macForm(mac), "mac: expected six pairs of lower case digits, found %s", quote(mac))
			t.is("mac", mac, t.text(meta+"mac"))
		}},
		{Name: "macs.unknown", Call: get + "02:00:00:00:00:00/", When: "a MAC that no interface has", Want: "404", Source: accessIMDS, run: func(t *try) {
			t.status("GET", t.read(macs+"02:00:00:00:00:00/"), "404")
		}},
		{Name: "macs.device-number", Call: get + "MAC/device-number", When: "the primary interface", Want: "0", Source: categories, run: func(t *try) {
			t.is("device-number", t.text(t.primary()+"device-number"), "0")
		}},
		{Name: "macs.different-numbers", Call: get + "MAC/device-number", When: "every interface", Want: "no number twice on one card", Source: categories, run: func(t *try) {
			seen := map[string]string{}
			for mac := range strings.SplitSeq(t.text(macs), "\n") {
				a := t.read(macs + mac + "device-number")
				if a.Status == http.StatusNotFound {
					continue // not complete yet
				}
				at := t.read(macs+mac+"network-card").Body + " " + a.Body
				t.holds(seen[at] == "", "device-number %s: found on %s and %s", a.Body, seen[at], mac)
				seen[at] = mac
			}
			t.holds(len(seen) > 0, "device-number: expected one at least, found none")
		}},
		{Name: "macs.interface-id", Call: get + "MAC/interface-id", When: "the primary interface", Want: "eni- and 17 or 8 hexadecimal digits", Source: categories, run: func(t *try) {
			t.matches("interface-id", t.text(t.primary()+"interface-id"), "eni-([0-9a-f]{17}|[0-9a-f]{8})")
		}},
		{Name: "macs.local-ipv4s", Call: get + "MAC/local-ipv4s", When: "the primary interface", Want: "local-ipv4 first", Source: categories, run: func(t *try) {
			first, _, _ := strings.Cut(t.text(t.primary()+"local-ipv4s"), "\n")
			t.is("first of local-ipv4s", first, t.text(meta+"local-ipv4"))
		}},
		{Name: "macs.subnet", Call: get + "MAC/subnet-ipv4-cidr-block", When: "the primary interface", Want: "a prefix that holds every local-ipv4s", Source: categories, run: func(t *try) {
			cidr := t.text(t.primary() + "subnet-ipv4-cidr-block")
			for a := range strings.SplitSeq(t.text(t.primary()+"local-ipv4s"), "\n") {
				inCIDR(t, "local-ipv4s", a, cidr)
			}
		}},
		{Name: "macs.subnet-id", Call: get + "MAC/subnet-id", When: "the primary interface", Want: "subnet-…", Source: categories, run: func(t *try) {
			t.matches("subnet-id", t.text(t.primary()+"subnet-id"), "subnet-[0-9a-z-]+")
		}},
		{Name: "macs.vpc-cidrs", Call: get + "MAC/vpc-ipv4-cidr-blocks", When: "the primary interface", Want: "prefixes, the first as vpc-ipv4-cidr-block; one holds local-ipv4", Source: categories, run: func(t *try) {
			list := strings.Split(t.text(t.primary()+"vpc-ipv4-cidr-blocks"), "\n")
			t.is("vpc-ipv4-cidr-block", t.text(t.primary()+"vpc-ipv4-cidr-block"), list[0])
			a, _ := netip.ParseAddr(t.text(meta + "local-ipv4"))
			t.holds(slices.ContainsFunc(list, func(c string) bool {
				p, err := netip.ParsePrefix(c)
				return err == nil && p.Contains(a)
			}), "vpc-ipv4-cidr-blocks: expected one with %v, found %s", a, quoteAll(list))
		}},
		{Name: "macs.vpc-id", Call: get + "MAC/vpc-id", When: "the primary interface", Want: "vpc-…", Source: categories, run: func(t *try) {
			t.matches("vpc-id", t.text(t.primary()+"vpc-id"), "vpc-[0-9a-z-]+")
		}},
		{Name: "macs.owner", Call: get + "MAC/owner-id", When: "the primary interface", Want: "the identity document's account", Source: categories, run: func(t *try) {
			t.matches("owner-id", t.text(t.primary()+"owner-id"), "[0-9]{12}")
			t.is("owner-id", t.text(t.primary()+"owner-id"), t.document()["accountId"])
		}},
		{Name: "macs.groups", Call: get + "MAC/security-group-ids", When: "the primary interface", Want: "sg-…, as many as security-groups has names", Source: categories, run: func(t *try) {
			ids := strings.Split(t.text(t.primary()+"security-group-ids"), "\n")
			for _, id := range ids {
				t.matches("security-group-ids", id, "sg-[0-9a-z-]+")
			}
			t.is("number of security-groups", strconv.Itoa(len(strings.Split(t.text(t.primary()+"security-groups"), "\n"))), strconv.Itoa(len(ids)))
		}},
		{Name: "macs.one-card", Call: get + "MAC/network-card", When: "a type with one network card", Want: "404: the key is there on types with several only", Source: "aws/amazon-ec2-net-utils#104", run: func(t *try) {
			kind := t.text(meta + "instance-type")
			if family, _, _ := strings.Cut(kind, "."); !slices.Contains([]string{"m5", "c5", "r5", "t3", "m6i", "c6i"}, family) {
				t.skip("%s may have several network cards", kind)
			}
			t.status("GET network-card", t.read(t.primary()+"network-card"), "404")
		}},
		{Name: "macs.prefixes", Call: get + "MAC/ipv4-prefix", When: "an interface with prefixes", Want: "/28 of its subnet", Source: prefixes, run: func(t *try) {
			path, list := t.withLeaf("ipv4-prefix", "no interface has prefixes")
			for text := range strings.SplitSeq(list, "\n") {
				p, err := netip.ParsePrefix(text)
				t.holds(err == nil && p.Bits() == 28 && p == p.Masked(), "ipv4-prefix: expected a /28, found %s", quote(text))
				inCIDR(t, "ipv4-prefix", strings.TrimSuffix(text, "/28"), t.text(path+"subnet-ipv4-cidr-block"))
			}
		}},
		{Name: "macs.ipv6s", Call: get + "MAC/ipv6s", When: "an interface with IPv6 addresses", Want: "addresses of subnet-ipv6-cidr-blocks", Source: categories, run: func(t *try) {
			path, list := t.withLeaf("ipv6s", "no interface has IPv6 addresses")
			for text := range strings.SplitSeq(list, "\n") {
				inCIDR(t, "ipv6s", text, t.text(path+"subnet-ipv6-cidr-blocks"))
			}
		}},
		{Name: "macs.no-ipv6s", Call: get + "MAC/ipv6s", When: "an interface that does not list ipv6s", Want: "404", Source: categories, run: func(t *try) {
			for mac := range strings.SplitSeq(t.text(macs), "\n") {
				if !listed(t.text(macs+mac), "ipv6s") {
					t.status("GET ipv6s", t.read(macs+mac+"ipv6s"), "404")
					return
				}
			}
			t.skip("every interface has IPv6 addresses")
		}},
	}
}

// withLeaf is the folder of an interface that has a value which not every one has, and that value.
func (t *try) withLeaf(name, why string) (path, value string) {
	const macs = meta + "network/interfaces/macs/"
	for mac := range strings.SplitSeq(t.text(macs), "\n") {
		if a := t.read(macs + mac + name); a.Status == http.StatusOK {
			return macs + mac, a.Body
		}
	}
	t.skip("%s", why)
	return macs, ""
}

// document is the instance identity document, texts only.
func (t *try) document() map[string]string {
	return t.object("/latest/dynamic/instance-identity/document", t.text("/latest/dynamic/instance-identity/document"))
}

// object is a text as JSON, without what is not a text.
func (t *try) object(path, text string) map[string]string {
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.differ("%s: expected a JSON object, found %s", path, quote(text))
	}
	out := map[string]string{}
	for k, v := range all {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

func dynamicRows() []Row {
	const roles = meta + "iam/security-credentials/"
	return []Row{
		{Name: "document.instance", Call: "GET /latest/dynamic/instance-identity/document", When: "any instance", Want: "its identifier, type, zone, region and address, as in meta-data", Source: document, run: func(t *try) {
			d := t.document()
			t.is("instanceId", d["instanceId"], t.text(meta+"instance-id"))
			t.is("instanceType", d["instanceType"], t.text(meta+"instance-type"))
			t.is("availabilityZone", d["availabilityZone"], t.text(meta+"placement/availability-zone"))
			t.is("region", d["region"], t.text(meta+"placement/region"))
			t.is("privateIp", d["privateIp"], t.text(meta+"local-ipv4"))
		}},
		{Name: "document.version", Call: "GET /latest/dynamic/instance-identity/document", When: "any instance", Want: "version 2017-09-30", Source: document, run: func(t *try) {
			t.is("version", t.document()["version"], "2017-09-30")
		}},
		{Name: "document.architecture", Call: "GET /latest/dynamic/instance-identity/document", When: "any instance", Want: "x86_64, arm64 or i386", Source: document, run: func(t *try) {
			t.matches("architecture", t.document()["architecture"], "x86_64|arm64|i386")
		}},
		{Name: "document.listing", Call: "GET /latest/dynamic/instance-identity/", When: "any instance", Want: "document, pkcs7, rsa2048 and signature", Source: document, run: func(t *try) {
			list := t.text("/latest/dynamic/instance-identity/")
			for _, name := range []string{"document", "pkcs7", "rsa2048", "signature"} {
				t.holds(listed(list, name), "listing: expected %s, found %s", name, quoteAll(strings.Split(list, "\n")))
			}
		}},
		{Name: "iam.credentials", Call: "GET " + roles + "ROLE", When: "an instance with a role", Want: "Success, a key that begins with ASIA, secret, token, and an end to come", Source: byRole, run: func(t *try) {
			role := t.optional(roles, "the instance has no role")
			c := t.object(roles+role, t.text(roles+role))
			t.is("Code", c["Code"], "Success")
			t.is("Type", c["Type"], "AWS-HMAC")
			t.matches("AccessKeyId", c["AccessKeyId"], "ASIA[A-Z0-9]{16}")
			t.holds(c["SecretAccessKey"] != "" && c["Token"] != "", "SecretAccessKey and Token: expected both, found less")
			end, err := time.Parse(time.RFC3339, c["Expiration"])
			t.holds(err == nil && end.After(t.Now()), "Expiration: expected an instant to come, found %s", quote(c["Expiration"]))
		}},
		{Name: "iam.no-such-role", Call: "GET " + roles + "no-such-role", When: "a role that the instance does not have", Want: "404", Source: byRole, run: func(t *try) {
			t.status("GET", t.read(roles+"no-such-role"), "404")
		}},
		{Name: "spot.no-notice", Call: "GET /latest/meta-data/spot/instance-action", When: "no interruption is near", Want: "404", Source: spotNotice, run: func(t *try) {
			t.status("GET", t.read(meta+"spot/instance-action"), "404")
		}},
		{Name: "tags.not-shown", Call: "GET /latest/meta-data/tags/instance/", When: "access to tags is off", Want: "404", Source: tagsIMDS, run: func(t *try) {
			if listed(t.text(meta), "tags/") {
				t.skip("the instance shows its tags: InstanceMetadataTags is enabled")
			}
			t.status("GET", t.read(meta+"tags/instance/"), "404")
		}},
		{Name: "user-data.none", Call: "GET /latest/user-data", When: "an instance without user data", Want: "404", Source: accessIMDS, run: func(t *try) {
			if t.read("/latest/user-data").Body != "" && t.read("/latest/user-data").Status == http.StatusOK {
				t.skip("the instance has user data")
			}
			t.status("GET", t.read("/latest/user-data"), "404")
		}},
	}
}
