package world

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// place is where something is written, object where a mapping and its keys are.
type (
	place  = strictyaml.Place
	object = strictyaml.Object
)

// reader takes values out of a tree of YAML.
type reader struct{ *strictyaml.Reader }

// field is a key of a mapping and what reads its value.
type field struct {
	key  string
	read func(*yaml.Node)
}

// object reads a mapping whose keys are known.
func (r *reader) object(n *yaml.Node, what string, fields ...field) object {
	out := make([]strictyaml.Field, len(fields))
	for i, f := range fields {
		out[i] = strictyaml.Field{Key: f.key, Read: f.read}
	}
	return r.Object(n, what, out...)
}

func of(f strictyaml.Field) field { return field{f.Key, f.Read} }

func (r *reader) text(key string, to *string) field    { return of(r.Text(key, to)) }
func (r *reader) texts(key string, to *[]string) field { return of(r.Texts(key, to)) }
func (r *reader) flag(key string, to *bool) field      { return of(r.Flag(key, to)) }

func (r *reader) number(key string, low, high int, to *int) field {
	return of(r.Number(key, low, high, to))
}

func (r *reader) choice(key string, words map[string]bool, form string, to *bool) field {
	return of(r.Choice(key, words, form, to))
}

func (r *reader) duration(key string, to *time.Duration) field { return of(r.Duration(key, to)) }

func (r *reader) prefix(key string, to *netip.Prefix) field {
	return field{key, func(n *yaml.Node) {
		r.Scalar(n, key, "a CIDR such as 10.0.0.0/24", func(s string) bool {
			p, err := netip.ParsePrefix(s)
			if err == nil && p != p.Masked() {
				r.Add(strictyaml.PlaceOf(n), fmt.Sprintf("write %v", p.Masked()), "%s: %v has bits beyond its length", key, p)
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
		r.List(n, key, func(e *yaml.Node) {
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
		r.Scalar(n, key, "an IPv4 address such as 10.0.0.10", func(s string) bool {
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
		r.Mapping(n, key, func(k, v *yaml.Node) {
			switch {
			case !r.Is(v, yaml.ScalarNode, "a tag's value", "a text"):
			case k.Value == "" || len(k.Value) > 128 || len(v.Value) > 256:
				r.Add(strictyaml.PlaceOf(k), "", "tag %s: expected a key of 1 to 128 characters and a value of up to 256", strictyaml.Found(k))
			case len(*to) == 50:
				r.Add(strictyaml.PlaceOf(k), "take some out", "tags: there are more than 50")
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
