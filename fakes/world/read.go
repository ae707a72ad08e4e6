package world

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/spelling"
)

// place is where something is written.
type place struct{ line, column int }

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

// object is where a mapping and its keys are written.
type object struct {
	begin place
	keys  map[string]place
}

// at is where a key is written, or else its mapping.
func (o *object) at(key string) place {
	if p, ok := o.keys[key]; ok {
		return p
	}
	return o.begin
}

// reader takes values out of a tree of YAML.
type reader struct{ errors }

// field is a key of a mapping and what reads its value.
type field struct {
	key  string
	read func(*yaml.Node)
}

// object reads a mapping whose keys are known.
func (r *reader) object(n *yaml.Node, what string, fields ...field) object {
	o := object{begin: placeOf(n), keys: map[string]place{}}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	r.mapping(n, what, func(k, v *yaml.Node) {
		i := slices.Index(names, k.Value)
		if i < 0 {
			r.add(placeOf(k), meant(k.Value, names), "%s has no key %q", what, k.Value)
			return
		}
		o.keys[k.Value] = placeOf(k)
		fields[i].read(v)
	})
	return o
}

// mapping calls each for the keys and values of a mapping, each key once.
func (r *reader) mapping(n *yaml.Node, what string, each func(k, v *yaml.Node)) {
	if !r.is(n, yaml.MappingNode, what, "keys and values, such as `id: x`") {
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !r.is(k, yaml.ScalarNode, "a key", "a word") {
			continue
		}
		if line, twice := seen[k.Value]; twice {
			r.add(placeOf(k), "keep one of them", "%s has the key %q twice, first in line %d", what, k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		each(k, v)
	}
}

// list calls each for the elements of a list.
func (r *reader) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	if !r.is(n, yaml.SequenceNode, what, "a list, such as [a, b] or lines that begin with a dash") {
		return
	}
	for _, e := range n.Content {
		each(e)
	}
}

// is refuses what is not of a kind.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, what, form string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.add(placeOf(n), "write the value out", "anchors and aliases are not read")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		r.add(placeOf(n), "give "+form+", or leave the key out", "%s is empty", what)
	case n.Kind != kind:
		r.add(placeOf(n), "", "%s: expected %s, found %s", what, form, found(n))
	default:
		return true
	}
	return false
}

// found is a value in a few words.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(shortened(n.Value))
}

// shortened is a text that fits into a sentence.
func shortened(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// meant is the hint for a word that is not known.
func meant(word string, known []string) string {
	if s := spelling.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "there are " + strings.Join(known, ", ")
}

// scalar reads a value that convert understands.
func (r *reader) scalar(n *yaml.Node, what, form string, convert func(string) bool) {
	if r.is(n, yaml.ScalarNode, what, form) && !convert(n.Value) {
		r.add(placeOf(n), "", "%s: expected %s, found %s", what, form, found(n))
	}
}

// text is any word, up to 255 characters as in tags.
func (r *reader) text(key string, to *string) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, "a text of 1 to 255 characters", func(s string) bool {
			*to = s
			return s != "" && len(s) <= 255
		})
	}}
}

func (r *reader) texts(key string, to *[]string) field {
	return field{key, func(n *yaml.Node) {
		r.list(n, key, func(e *yaml.Node) {
			var s string
			r.text(key, &s).read(e)
			*to = append(*to, s)
		})
	}}
}

// number is a whole number within limits.
func (r *reader) number(key string, low, high int, to *int) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, fmt.Sprintf("a whole number from %d to %d", low, high), func(s string) bool {
			v, err := strconv.Atoi(s)
			*to = min(max(v, low), high)
			return err == nil && *to == v
		})
	}}
}

func (r *reader) flag(key string, to *bool) field {
	return r.choice(key, map[string]bool{"true": true, "false": false}, "true or false", to)
}

// choice is one of two words.
func (r *reader) choice(key string, words map[string]bool, form string, to *bool) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, form, func(s string) (ok bool) {
			*to, ok = words[s]
			return ok
		})
	}}
}

func (r *reader) duration(key string, to *time.Duration) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, "a duration such as 250ms or 5s", func(s string) bool { return parseDuration(s, to) })
	}}
}

// longest bounds durations: sums of a few thousand of them stay far from overflow.
const longest = 1000 * time.Hour

func parseDuration(s string, to *time.Duration) bool {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longest {
		return false
	}
	*to = d
	return true
}

func (r *reader) prefix(key string, to *netip.Prefix) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, "a CIDR such as 10.0.0.0/24", func(s string) bool {
			p, err := netip.ParsePrefix(s)
			if err == nil && p != p.Masked() {
				r.add(placeOf(n), fmt.Sprintf("write %v", p.Masked()), "%s: %v has bits beyond its length", key, p)
				*to = p.Masked()
				return true
			}
			*to = p
			return err == nil
		})
	}}
}

func (r *reader) prefixes(key string, to *[]netip.Prefix) field {
	return field{key, func(n *yaml.Node) {
		r.list(n, key, func(e *yaml.Node) {
			var p netip.Prefix
			r.prefix(key, &p).read(e)
			if p.IsValid() {
				*to = append(*to, p)
			}
		})
	}}
}

func (r *reader) address(key string, to *netip.Addr) field {
	return field{key, func(n *yaml.Node) {
		r.scalar(n, key, "an IPv4 address such as 10.0.0.10", func(s string) bool {
			a, err := netip.ParseAddr(s)
			*to = a
			return err == nil && a.Is4()
		})
	}}
}

// tags are keys and values; AWS's own limits: 50 of them, 128 and 256 characters ("Tag your Amazon EC2 resources").
func (r *reader) tags(key string, to *map[string]string) field {
	return field{key, func(n *yaml.Node) {
		*to = map[string]string{}
		r.mapping(n, key, func(k, v *yaml.Node) {
			switch {
			case !r.is(v, yaml.ScalarNode, "a tag's value", "a text"):
			case k.Value == "" || len(k.Value) > 128 || len(v.Value) > 256:
				r.add(placeOf(k), "", "tag %s: expected a key of 1 to 128 characters and a value of up to 256", found(k))
			case len(*to) == 50:
				r.add(placeOf(k), "take some out", "tags: there are more than 50")
			default:
				(*to)[k.Value] = v.Value
			}
		})
	}}
}

// tagList is a map of tags as a list, in order of their keys, with a name unless there is one.
func tagList(m map[string]string, name string) (out []ec2.Tag) {
	if _, ok := m["Name"]; !ok && name != "" {
		out = append(out, ec2.Tag{Key: "Name", Value: name})
	}
	for k, v := range m {
		out = append(out, ec2.Tag{Key: k, Value: v})
	}
	slices.SortFunc(out, func(a, b ec2.Tag) int { return strings.Compare(a.Key, b.Key) })
	return out
}
