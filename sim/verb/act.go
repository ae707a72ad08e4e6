package verb

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/scn"
)

// Act is an action whose arguments have been checked against its verb.
type Act struct {
	Of      *Verb
	Verb    string // its name
	Subject scn.Subject
	values  map[string]string
	Keys    []scn.Arg // settings
}

// Text is an argument, or its default.
func (a *Act) Text(name string) string { return a.values[name] }

// Int is an argument of type Count.
func (a *Act) Int(name string) int {
	i, _ := strconv.Atoi(a.values[name]) // checked by Bind
	return i
}

// Duration is an argument of that type.
func (a *Act) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(a.values[name]) // checked by Bind
	return d
}

// System is the one that an action exchanges daemon or plugin for, as NAME@WHERE; "" is none.
func (a *Act) System() string {
	if to := a.Text("to"); strings.Contains(to, "@") {
		return to
	}
	return ""
}

// Bind checks an action against the catalogue. The error is an *scn.Error with its position.
func Bind(a *scn.Action) (*Act, *scn.Error) {
	v := Of(a)
	if v == nil {
		var known []string
		for _, v := range All() {
			if slices.Contains(v.On, a.Subject.Kind) {
				known = append(known, v.Name)
			}
		}
		return nil, scn.Errorf(a.VerbPos, Unknown(a.Verb, known), "%s cannot %q", a.Subject, a.Verb)
	}
	act := &Act{Of: v, Verb: v.Name, Subject: a.Subject, values: map[string]string{}}
	for _, p := range v.Params {
		act.values[p.Name] = p.Default
	}
	given := map[string]bool{}
	for _, arg := range a.Args {
		p, err := v.param(arg, given)
		if err != nil {
			return nil, err
		}
		if p.Type == Setting {
			if err := CheckSetting(arg.Pos, arg.Key, arg.Value); err != nil {
				return nil, err
			}
			act.Keys = append(act.Keys, arg)
			continue
		}
		if err := p.check(arg); err != nil {
			return nil, err
		}
		given[p.Name] = true
		act.values[p.Name] = arg.Value
	}
	for _, p := range v.Params {
		if !p.Optional && !given[p.Name] {
			return nil, scn.Errorf(a.VerbPos, "write "+v.Usage(), "%s lacks %s", v.Name, p.Name)
		}
	}
	return act, nil
}

func (v *Verb) param(arg scn.Arg, given map[string]bool) (*Param, *scn.Error) {
	for i := range v.Params {
		p := &v.Params[i]
		switch {
		case p.Type == Setting && arg.Key != "":
			return p, nil
		case arg.Key == p.Name:
			return p, nil
		case arg.Key == "" && p.Bare && !given[p.Name]:
			return p, nil
		}
	}
	name := cmp.Or(arg.Key, arg.Value)
	return nil, scn.Errorf(arg.Pos, "write "+v.Usage(), "%s takes no %q", v.Name, name)
}

// CheckSetting judges a setting of the daemon. The error is at pos.
func CheckSetting(pos scn.Pos, key, value string) *scn.Error {
	s := ipam.Defaults()
	if err := s.Put(key, value); err != nil {
		if !slices.Contains(ipam.Variables(), key) {
			return scn.Errorf(pos, Unknown(key, ipam.Variables()), "unknown setting %q", key)
		}
		return scn.Errorf(pos, "", "%v", err)
	}
	return nil
}

// Unknown is the hint for a word that is none of those known.
func Unknown(word string, known []string) string {
	if near := scn.Suggest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) <= 12 {
		return "there are " + strings.Join(known, "|")
	}
	return "enilab verbs lists them"
}
