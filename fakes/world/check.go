package world

import (
	"slices"

	"github.com/enilab/enilab/internal/strictyaml"
)

// check judges what no mapping shows by itself.
func (r *reader) check(w *World) {
	if len(w.Accounts) == 0 {
		r.Add(place{Line: 1, Column: 1}, "begin with an example of worlds/", "the world has no accounts")
	}
	if len(w.Accounts) == 1 {
		w.Accounts[0].Default = true
	}
	keys, names := map[string]place{}, map[string]place{}
	for i := range w.Accounts {
		a := &w.Accounts[i]
		r.checkAccount(w, i)
		for k := range a.Keys {
			r.once(keys, a.Keys[k].Access, "the access key", a.Keys[k].Begin)
		}
		for j := range a.Regions {
			g := &a.Regions[j]
			for k := range g.Instances {
				r.once(names, g.Instances[k].Name, "the instance", g.Instances[k].Begin)
			}
			r.room(g)
		}
	}
}

// once refuses a name that is taken.
func (r *reader) once(seen map[string]place, name, what string, at place) {
	if first, twice := seen[name]; twice {
		r.Add(at, "give it another name", "there is %s %s already, in line %d", what, name, first.Line)
		return
	}
	seen[name] = at
}

func (r *reader) checkAccount(w *World, i int) {
	a := &w.Accounts[i]
	for _, c := range []byte(a.ID) {
		if len(a.ID) != 12 || c < '0' || c > '9' {
			r.Add(a.At("id"), "", "an account's id is 12 digits, found %q", strictyaml.Shortened(a.ID))
			break
		}
	}
	for k := range w.Accounts[:i] {
		o := &w.Accounts[k]
		if o.ID == a.ID {
			r.Add(a.At("id"), "", "there is an account %s already, in line %d", a.ID, o.Begin.Line)
		}
		if o.Default && a.Default {
			r.Add(a.At("default"), "", "the default account is that of line %d already", o.Begin.Line)
		}
	}
	if len(a.Regions) == 0 {
		r.Add(a.At("regions"), "", "account %s has no regions", a.ID)
	}
	for k := range a.Regions {
		name := a.Regions[k].Name
		if slices.ContainsFunc(a.Regions[:k], func(o Region) bool { return o.Name == name }) {
			r.Add(a.Regions[k].At("name"), "", "account %s has the region %s already", a.ID, name)
		}
		if len(a.Regions[k].Config.Subnets) == 0 {
			r.Add(a.Regions[k].At("vpcs"), "give one under vpcs", "the region %s has no subnets", name)
		}
	}
}

// room refuses more addresses than a subnet has, at the first that finds none.
func (r *reader) room(g *Region) {
	left := map[string]int{}
	for i := range g.subnets {
		left[string(g.subnets[i].ID)] = g.subnets[i].room
	}
	take := func(id string, n int, at place) {
		was := left[id]
		left[id] -= n
		if was >= 0 && left[id] < 0 {
			s := g.subnetNamed(id)
			r.Add(at, "take a larger subnet, or fewer addresses", "subnet %s has %d addresses, and with this one %d are asked for", s.label(), s.room, s.room-left[id])
		}
	}
	for k := range g.Instances {
		i := &g.Instances[k]
		take(string(i.Subnet), i.v4(), i.Begin)
		for j := range i.ENIs {
			take(string(i.ENIs[j].Subnet), i.ENIs[j].v4(), i.ENIs[j].Begin)
		}
	}
	for k := range g.ENIs {
		take(string(g.ENIs[k].Subnet), g.ENIs[k].v4(), g.ENIs[k].Begin)
	}
}

// v4 is how many addresses of a subnet the interface needs.
func (a *Addressing) v4() int { return 1 + a.Addresses + 16*a.Prefixes }
