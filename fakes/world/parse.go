package world

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stderrors "errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
)

// Defaults of what a file leaves out.
const (
	defaultHang  = 30 * time.Second
	defaultSpeed = 1
)

// Parse reads a world file. The error is an Errors.
func Parse(name string, data []byte) (*World, error) {
	r := &reader{errors{file: name}}
	w := &World{Name: name, Seed: 1, Speed: defaultSpeed, Hang: defaultHang}
	if n := r.tree(data); n != nil {
		r.world(n, w)
	}
	if len(r.errors.list) == 0 {
		r.check(w)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return w, nil
}

// tree is the file's only document, nil if there is none.
func (r *reader) tree(data []byte) *yaml.Node {
	if len(data) > MaxFile {
		r.add(place{}, "is this a world file?", "the file has %d bytes, and a world file at most %d", len(data), MaxFile)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := d.Decode(&doc)
	switch {
	case stderrors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		r.add(place{}, "begin with an example of worlds/", "the file is empty")
		return nil
	case err != nil:
		r.add(badLine(err), "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := d.Decode(&more); !stderrors.Is(err, io.EOF) {
		r.add(place{max(more.Line, 1), max(more.Column, 1)}, "keep one", "there is a second document in the file")
	}
	return doc.Content[0]
}

// badLine is where the text of a syntax error says that it is.
func badLine(err error) place {
	_, rest, ok := strings.Cut(err.Error(), "line ")
	number, _, _ := strings.Cut(rest, ":")
	line, bad := strconv.Atoi(number)
	if !ok || bad != nil || line < 1 {
		return place{}
	}
	return place{line, 1}
}

func (r *reader) world(n *yaml.Node, w *World) {
	var k knobs
	var accounts *yaml.Node
	o := r.object(n, "the world", slices.Concat(r.knobFields(&k), []field{
		{"seed", func(n *yaml.Node) {
			r.scalar(n, "seed", "a whole number", func(s string) bool {
				v, err := strconv.ParseUint(s, 10, 64)
				w.Seed = v
				return err == nil
			})
		}},
		{"speed", func(n *yaml.Node) {
			r.scalar(n, "speed", "a number from 0.001 to 1000: how many seconds pass in a second", func(s string) bool {
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
			r.add(o.begin, "begin with an example of worlds/", "the world has no accounts")
		}
		return
	}
	r.list(accounts, "accounts", func(n *yaml.Node) {
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
	orText(&a.ID, ec2.Account)
	if keys != nil {
		r.list(keys, "keys", func(n *yaml.Node) {
			var key Key
			key.object = r.object(n, "a key", r.text("access", &key.Access), r.text("secret", &key.Secret))
			r.need(n, &key.object, "a key", "access", "secret")
			a.Keys = append(a.Keys, key)
		})
	}
	if len(a.Keys) == 0 {
		a.Keys = []Key{{Access: "AKIA" + strings.ToUpper(hash("key", a.ID)[:16]), Secret: hash("secret", a.ID), object: a.object}}
	}
	if regions == nil {
		r.need(n, &a.object, "an account", "regions")
		return
	}
	r.list(regions, "regions", func(n *yaml.Node) {
		region := Region{groups: map[string]group{}}
		r.region(n, a, &region, *k)
		a.Regions = append(a.Regions, region)
	})
}

// need refuses a mapping that leaves keys out.
func (r *reader) need(n *yaml.Node, o *object, what string, keys ...string) {
	for _, k := range keys {
		if _, ok := o.keys[k]; !ok && n.Kind == yaml.MappingNode {
			r.add(o.begin, "", "%s needs the key %s", what, k)
		}
	}
}

func (r *reader) region(n *yaml.Node, a *Account, g *Region, k knobs) {
	var vpcs, instances, enis, faults, launched *yaml.Node
	g.object = r.object(n, "a region", slices.Concat(r.knobFields(&k), []field{
		r.text("name", &g.Name),
		{"vpcs", func(n *yaml.Node) { vpcs = n }}, {"instances", func(n *yaml.Node) { instances = n }},
		{"enis", func(n *yaml.Node) { enis = n }}, {"faults", func(n *yaml.Node) { faults = n }},
		{"launched", func(n *yaml.Node) { launched = n }},
	})...)
	r.need(n, &g.object, "a region", "name", "vpcs")
	if launched != nil {
		r.launched(launched, &g.Launched)
	}
	g.Config = ec2.Config{Account: a.ID, Region: g.Name, Zone: g.Name + "a", Latency: k.latency, Lag: k.lag, Throttle: k.throttle,
		ENIQuota: k.quotas.enis, VCPUQuota: k.quotas.vcpus, Capacity: k.quotas.capacity, TerminatedFor: k.quotas.terminatedFor, MultiVPC: k.quotas.multiVPC,
		FullIsInvalidValue: k.quotas.fullIsInvalid}
	if vpcs != nil {
		r.list(vpcs, "vpcs", func(n *yaml.Node) { r.vpc(n, g) })
	}
	if instances != nil {
		r.list(instances, "instances", func(n *yaml.Node) { r.instance(n, g) })
	}
	if enis != nil {
		r.list(enis, "enis", func(n *yaml.Node) {
			var e ENI
			r.eni(n, g, &e, false)
			g.ENIs = append(g.ENIs, e)
		})
	}
	if faults != nil {
		r.list(faults, "faults", func(n *yaml.Node) {
			f := Fault{object: object{begin: placeOf(n)}}
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

func orText(s *string, or string) {
	if *s == "" {
		*s = or
	}
}

// numbered is a name of one of several.
func numbered(name string, i, count int) string {
	if count <= 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}
