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

// form is a body that is being read: parameters are taken by name, and what is left over was not known. The first fault stays.
type form struct {
	names  []string // in order of appearance
	values map[string]string
	taken  map[string]bool
	fault  *fault
}

// parseForm reads a body. A name that is given twice is refused: nobody can say which one EC2 would take.
func parseForm(body string) (*form, *fault) {
	q := &form{values: map[string]string{}, taken: map[string]bool{}}
	for pair := range strings.SplitSeq(body, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(k)
		if err == nil {
			v, err = url.QueryUnescape(v)
		}
		_, twice := q.values[name]
		switch {
		case err != nil, name == "", strings.Contains(pair, ";"):
			return nil, malformed("near '" + excerpt(pair) + "'")
		case !printable(name) || !printable(v):
			return nil, bad("InvalidCharacter", "A specified character is invalid.")
		case twice:
			return nil, malformed("the parameter " + excerpt(name) + " is given twice")
		case len(q.names) == maxParameters:
			return nil, malformed("more than " + strconv.Itoa(maxParameters) + " parameters")
		}
		q.names = append(q.names, name)
		q.values[name] = v
	}
	return q, nil
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
	v, ok := q.values[name]
	if ok {
		q.taken[name] = true
	}
	return v, ok
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

// flag is a boolean; absent is false.
func (q *form) flag(name string) bool {
	v, ok := q.take(name)
	if ok && v != "true" && v != "false" {
		q.invalid(name, v, "Expecting 'true' or 'false'.")
	}
	return v == "true"
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
	var numbers [maxMembers + 1]bool
	found := 0
	for _, name := range q.names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest == "" || rest[0] != '.' {
			continue
		}
		digits, _, _ := strings.Cut(rest[1:], ".")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > maxMembers || strconv.Itoa(n) != digits || numbers[n] {
			continue // what is no number of the list is left over, and so found
		}
		numbers[n] = true
		found++
	}
	out := make([]string, 0, found)
	for n := 1; len(out) < found; n++ {
		if numbers[n] {
			out = append(out, prefix+"."+strconv.Itoa(n))
		}
	}
	return out
}

// list is a list of texts, none of them empty.
func (q *form) list(prefix string) []string {
	var out []string
	for _, name := range q.members(prefix) {
		out = append(out, q.required(name))
	}
	return out
}

// addresses is a list of IPv4 addresses.
func (q *form) addresses(prefix string) []netip.Addr {
	var out []netip.Addr
	for _, name := range q.members(prefix) {
		out = append(out, q.address(name))
	}
	return out
}

// without refuses parameters of the API that the model has nothing for.
func (q *form) without(names ...string) {
	for _, given := range q.names {
		for _, name := range names {
			if given == name || strings.HasPrefix(given, name) && given[len(name)] == '.' {
				q.fail(bad("UnsupportedOperation", "The parameter "+excerpt(given)+" is not modelled."))
			}
		}
	}
}

// done refuses what nobody has taken.
func (q *form) done() {
	for _, name := range q.names {
		if !q.taken[name] {
			q.fail(bad("UnknownParameter", "The parameter "+excerpt(name)+" is not recognized"))
		}
	}
}
