package server

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a body's shape.
const (
	maxParameters = 4000
	maxMembers    = 1000 // of one list
)

// fewParameters are searched one by one: making a map takes longer.
const fewParameters = 24

// form is a body that is being read: parameters are taken by name, and what is left over was not known. The first fault stays.
type form struct {
	list  []parameter // in order of appearance
	at    map[string]int
	fault *fault
}

type parameter struct {
	name, value string
	taken       bool
}

// parseForm reads a body. A name that is given twice is refused: it is not documented which one EC2 would take.
func parseForm(body string) (*form, *fault) {
	q := &form{list: make([]parameter, 0, min(1+strings.Count(body, "&"), fewParameters))}
	for pair := range strings.SplitSeq(body, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		name, err := unescape(k)
		if err == nil {
			v, err = unescape(v)
		}
		switch {
		case err != nil, name == "", strings.Contains(pair, ";"):
			return nil, malformed("near '" + excerpt(pair) + "'")
		case !printable(name) || !printable(v):
			return nil, bad("InvalidCharacter", "A specified character is invalid.")
		case q.find(name) >= 0:
			return nil, malformed("the parameter " + excerpt(name) + " is given twice")
		case len(q.list) == maxParameters:
			return nil, malformed("more than " + strconv.Itoa(maxParameters) + " parameters")
		}
		q.add(name, v)
	}
	return q, nil
}

// unescape is url.QueryUnescape, which looks at each byte twice.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, nil
	}
	return url.QueryUnescape(s)
}

func (q *form) add(name, value string) {
	q.list = append(q.list, parameter{name: name, value: value})
	switch n := len(q.list); {
	case q.at != nil:
		q.at[name] = n - 1
	case n > fewParameters:
		q.at = make(map[string]int, 4*n)
		for i := range q.list {
			q.at[q.list[i].name] = i
		}
	}
}

// find is where a parameter is, -1 if it is not there.
func (q *form) find(name string) int {
	if q.at != nil {
		if i, ok := q.at[name]; ok {
			return i
		}
		return -1
	}
	for i := range q.list {
		if q.list[i].name == name {
			return i
		}
	}
	return -1
}

func malformed(why string) *fault {
	return &fault{404, "MalformedQueryString", "The query string contains a syntax error: " + why + "."}
}

// excerpt is the beginning of a text that a message quotes.
func excerpt(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// printable says whether a text can stand in XML: UTF-8 without control characters but tab and line breaks.
func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return printableRunes(s[i:])
		}
	}
	return true
}

func printableRunes(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return utf8.ValidString(s)
}

// fail keeps the first fault.
func (q *form) fail(f *fault) {
	if q.fault == nil {
		q.fault = f
	}
}

// take is a parameter's value, and whether it is there.
func (q *form) take(name string) (string, bool) {
	i := q.find(name)
	if i < 0 {
		return "", false
	}
	q.list[i].taken = true
	return q.list[i].value, true
}

// text is an optional parameter.
func (q *form) text(name string) string {
	v, _ := q.take(name)
	return v
}

// required is a parameter that must be there and not empty.
func (q *form) required(name string) string {
	v, _ := q.take(name)
	if v == "" {
		q.fail(bad("MissingParameter", "The request must contain the parameter "+name))
	}
	return v
}

// number is an integer between bounds; absent is -1.
func (q *form) number(name string, least, most int) int {
	v, ok := q.take(name)
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		q.invalid(name, v, "Expecting an integer between "+strconv.Itoa(least)+" and "+strconv.Itoa(most)+".")
	}
	return n
}

// most bounds counts: far above what anything can have, and far below where arithmetic ends.
const most = 1 << 20

// count is a number of things, 0 when it is absent.
func (q *form) count(name string, least int) int { return max(0, q.number(name, least, most)) }

// flag is a boolean; absent is false.
func (q *form) flag(name string) bool {
	v, ok := q.take(name)
	if ok && v != "true" && v != "false" {
		q.invalid(name, v, "Expecting 'true' or 'false'.")
	}
	return v == "true"
}

// only takes a parameter that may have no other value than the one the model always has.
func (q *form) only(name, value string) {
	if v, ok := q.take(name); ok && v != value {
		q.fail(bad("UnsupportedOperation", "The parameter "+name+" is modelled with the value '"+value+"' only."))
	}
}

// address is an IPv4 address.
func (q *form) address(name string) netip.Addr {
	v := q.required(name)
	a, err := netip.ParseAddr(v)
	if v != "" && (err != nil || !a.Is4()) {
		q.invalid(name, v, "Invalid IPv4 address.")
	}
	return a
}

// ipv6 is an IPv6 address, without a zone and not an IPv4 one in disguise.
func (q *form) ipv6(name string) netip.Addr {
	v := q.required(name)
	a, err := netip.ParseAddr(v)
	if v != "" && (err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "") {
		q.invalid(name, v, "Invalid IPv6 address.")
	}
	return a
}

// prefix is a block of addresses, without bits behind its length.
func (q *form) prefix(name string, six bool) netip.Prefix {
	v := q.required(name)
	p, err := netip.ParsePrefix(v)
	if v != "" && (err != nil || p.Addr().Is4() == six || p.Addr().Is4In6() || p != p.Masked()) {
		q.invalid(name, v, "Invalid prefix.")
	}
	return p
}

// identifier checks a value's form: a prefix and 8 or 17 hexadecimal digits.
func (q *form) identifier(kind, prefix, v string) string {
	digits, ok := strings.CutPrefix(v, prefix)
	if v != "" && (!ok || !hexadecimal(digits, 8) && !hexadecimal(digits, 17)) {
		q.fail(bad(kind+".Malformed", "Invalid id: \""+excerpt(v)+"\" (expecting \""+prefix+"...\")"))
	}
	return v
}

func (q *form) eni(v string) string      { return q.identifier("InvalidNetworkInterfaceId", "eni-", v) }
func (q *form) instance(v string) string { return q.identifier("InvalidInstanceID", "i-", v) }

func (q *form) invalid(name, value, why string) {
	q.fail(bad("InvalidParameterValue", "Value ("+excerpt(value)+") for parameter "+name+" is invalid. "+why))
}

// members are the names of a list's elements, PREFIX.1, PREFIX.2 and so on, in order; numbers may be left out.
func (q *form) members(prefix string) []string {
	var numbers [(maxMembers + 64) / 64]uint64
	found := 0
	for i := range q.list {
		rest, ok := strings.CutPrefix(q.list[i].name, prefix)
		if !ok || rest == "" || rest[0] != '.' {
			continue
		}
		n := memberNumber(rest[1:])
		if n == 0 || numbers[n/64]&(1<<(n%64)) != 0 {
			continue // what is no number of the list is left over, and so found
		}
		numbers[n/64] |= 1 << (n % 64)
		found++
	}
	if found == 0 {
		return nil
	}
	out := make([]string, 0, found)
	for n := 1; len(out) < found; n++ {
		if numbers[n/64]&(1<<(n%64)) != 0 {
			out = append(out, prefix+"."+strconv.Itoa(n))
		}
	}
	return out
}

// memberNumber is the number at the beginning of "12.Name" or "12": decimal, without leading zeros, 0 if it is none.
func memberNumber(s string) int {
	n := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			return n
		case c < '0' || c > '9' || i == 0 && c == '0':
			return 0
		}
		if n = 10*n + int(c-'0'); n > maxMembers {
			return 0
		}
	}
	return n
}

// items are the members of a list, each read by its name.
func items[T any](q *form, prefix string, read func(name string) T) []T {
	names := q.members(prefix)
	if len(names) == 0 {
		return nil
	}
	out := make([]T, 0, len(names))
	for _, name := range names {
		out = append(out, read(name))
	}
	return out
}

// texts is a list of texts, none of them empty.
func (q *form) texts(prefix string) []string { return items(q, prefix, q.required) }

// addresses is a list of IPv4 addresses.
func (q *form) addresses(prefix string) []netip.Addr { return items(q, prefix, q.address) }

// identifiers is a list of identifiers, each checked.
func identifiers[T ~string](q *form, prefix string, check func(string) string) []T {
	return items(q, prefix, func(name string) T { return T(check(q.required(name))) })
}

// without refuses parameters of the API that the model has nothing for.
func (q *form) without(names ...string) {
	for i := range q.list {
		if q.list[i].taken {
			continue
		}
		given := q.list[i].name
		for _, name := range names {
			if given == name || strings.HasPrefix(given, name) && given[len(name)] == '.' {
				q.fail(bad("UnsupportedOperation", "The parameter "+excerpt(given)+" is not modelled."))
			}
		}
	}
}

// done refuses parameters that were not read.
func (q *form) done() {
	for i := range q.list {
		if !q.list[i].taken {
			q.fail(bad("UnknownParameter", "The parameter "+excerpt(q.list[i].name)+" is not recognized"))
		}
	}
}
