package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// Defaults of what a file leaves out.
const (
	defaultHang  = 30 * time.Second
	defaultSpeed = 1
)

// Parse reads a world file. The error is an Errors.
func Parse(name string, data []byte) (*World, error) {
	r := &reader{strictyaml.NewReader(name)}
	w := &World{Name: name, Seed: 1, Speed: defaultSpeed, Hang: defaultHang}
	if n := r.Tree(data, form); n != nil {
		r.world(n, w)
	}
	if !r.Failed() {
		r.check(w)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

func (r *reader) world(n *yaml.Node, w *World) {
	k := knobs{lag: usual}
	var accounts *yaml.Node
	o := r.object(n, "the world", slices.Concat(r.knobFields(&k), []field{
		{"seed", func(n *yaml.Node) {
			r.Scalar(n, "seed", "a whole number", func(s string) bool {
				v, err := strconv.ParseUint(s, 10, 64)
				w.Seed = v
				return err == nil
			})
		}},
		{"speed", func(n *yaml.Node) {
			r.Scalar(n, "speed", "a number from 0.001 to 1000: how many seconds pass in a second", func(s string) bool {
				v, err := strconv.ParseFloat(s, 64)
				ok := err == nil && !math.IsNaN(v) && v >= 0.001 && v <= 1000
				if ok {
					w.Speed = v
				}
				return ok
			})
		}},
		r.flag("verify-signatures", &w.Verify),
		r.duration("hang", &w.Hang),
		{"accounts", func(n *yaml.Node) { accounts = n }},
	})...)
	if accounts == nil {
		if n.Kind == yaml.MappingNode {
			r.Add(o.Begin, "begin with an example of worlds/", "the world has no accounts")
		}
		return
	}
	r.List(accounts, "accounts", func(n *yaml.Node) {
		var a Account
		r.account(n, &a, &k)
		w.Accounts = append(w.Accounts, a)
	})
}

func (r *reader) account(n *yaml.Node, a *Account, k *knobs) {
	var keys, regions *yaml.Node
	a.object = r.object(n, "an account", r.text("id", &a.ID), r.flag("default", &a.Default),
		field{"keys", func(n *yaml.Node) { keys = n }},
		field{"regions", func(n *yaml.Node) { regions = n }})
	a.ID = cmp.Or(a.ID, ec2.Account)
	if keys != nil {
		r.List(keys, "keys", func(n *yaml.Node) {
			var key Key
			key.object = r.object(n, "a key", r.text("access", &key.Access), r.text("secret", &key.Secret))
			r.Need(n, &key.object, "a key", "access", "secret")
			a.Keys = append(a.Keys, key)
		})
	}
	if len(a.Keys) == 0 {
		a.Keys = []Key{{Access: "AKIA" + strings.ToUpper(hash("key", a.ID)[:16]), Secret: hash("secret", a.ID), object: a.object}}
	}
	if regions == nil {
		r.Need(n, &a.object, "an account", "regions")
		return
	}
	r.List(regions, "regions", func(n *yaml.Node) {
		region := Region{groups: map[string]group{}}
		r.region(n, a, &region, *k)
		a.Regions = append(a.Regions, region)
	})
}

func (r *reader) region(n *yaml.Node, a *Account, g *Region, k knobs) {
	var vpcs, instances, enis, faults, launched *yaml.Node
	g.object = r.object(n, "a region", slices.Concat(r.knobFields(&k), []field{
		r.text("name", &g.Name),
		{"vpcs", func(n *yaml.Node) { vpcs = n }}, {"instances", func(n *yaml.Node) { instances = n }},
		{"enis", func(n *yaml.Node) { enis = n }}, {"faults", func(n *yaml.Node) { faults = n }},
		{"launched", func(n *yaml.Node) { launched = n }},
	})...)
	r.Need(n, &g.object, "a region", "name", "vpcs")
	if launched != nil {
		r.launched(launched, &g.Launched)
	}
	g.Config = ec2.Config{Account: a.ID, Region: g.Name, Zone: g.Name + "a", Latency: k.latency, Lag: k.lag, Throttle: k.throttle,
		ENIQuota: k.quotas.enis, VCPUQuota: k.quotas.vcpus, Capacity: k.quotas.capacity, TerminatedFor: k.quotas.terminatedFor, MultiVPC: k.quotas.multiVPC,
		FullIsInvalidValue: k.quotas.fullIsInvalid}
	if vpcs != nil {
		r.List(vpcs, "vpcs", func(n *yaml.Node) { r.vpc(n, g) })
	}
	if instances != nil {
		r.List(instances, "instances", func(n *yaml.Node) { r.instance(n, g) })
	}
	if enis != nil {
		r.List(enis, "enis", func(n *yaml.Node) {
			var e ENI
			r.eni(n, g, &e, false)
			g.ENIs = append(g.ENIs, e)
		})
	}
	if faults != nil {
		r.List(faults, "faults", func(n *yaml.Node) {
			f := Fault{object: object{Begin: strictyaml.PlaceOf(n)}}
			r.text("a fault", &f.Text).read(n)
			g.Faults = append(g.Faults, f)
		})
	}
}

// hash is 64 hexadecimal digits that depend on names.
func hash(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:])
}

// identifier is one of EC2's form for what the file gives a name only.
func (g *Region) identifier(prefix string, names ...string) string {
	return prefix + hash(append([]string{g.Config.Account, g.Name, prefix}, names...)...)[:17]
}

// numbered is a name of one of several.
func numbered(name string, i, count int) string {
	if count <= 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}
