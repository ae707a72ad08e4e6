package kube

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ENIConfig is one of amazon-vpc-cni-k8s's objects by that name.
type ENIConfig struct {
	Name   string
	Subnet string
	Groups []string
}

// config is an ENIConfig that is there, or was. It stays when it is gone, with the instant.
type config struct {
	ENIConfig
	gone    bool
	changed time.Duration
}

// PutENIConfig makes an ENIConfig, or changes the one of that name. False when it is so already.
func (c *Cluster) PutENIConfig(now time.Duration, e ENIConfig) bool {
	e.Groups = slices.Clone(e.Groups)
	i, known := c.config(e.Name)
	if known && !c.configs[i].gone && c.configs[i].Subnet == e.Subnet && slices.Equal(c.configs[i].Groups, e.Groups) {
		return false
	}
	next := config{ENIConfig: e, changed: now}
	if c.changes++; known {
		c.configs[i] = next
	} else {
		c.configs = slices.Insert(c.configs, i, next)
	}
	return true
}

// DeleteENIConfig deletes one; false when there is none of that name.
func (c *Cluster) DeleteENIConfig(now time.Duration, name string) bool {
	i, known := c.config(name)
	if !known || c.configs[i].gone {
		return false
	}
	c.configs[i].gone, c.configs[i].changed = true, now
	c.changes++
	return true
}

// ENIConfig is the one of a name, and when it was made, changed or deleted last; false when there is none.
func (c *Cluster) ENIConfig(name string) (e ENIConfig, changed time.Duration, ok bool) {
	i, known := c.config(name)
	if !known {
		return ENIConfig{}, 0, false
	}
	return c.configs[i].ENIConfig, c.configs[i].changed, !c.configs[i].gone
}

// ENIConfigs are those that there are, by name.
func (c *Cluster) ENIConfigs() (out []ENIConfig) {
	for i := range c.configs {
		if !c.configs[i].gone {
			out = append(out, c.configs[i].ENIConfig)
		}
	}
	return out
}

func (c *Cluster) config(name string) (int, bool) {
	return slices.BinarySearchFunc(c.configs, name, func(e config, name string) int { return strings.Compare(e.Name, name) })
}

// Label sets a label of a node, or takes it away when the value is nil. False when it is so already.
func (c *Cluster) Label(now time.Duration, n int, key string, value *string) bool {
	return c.mark(now, n, key, value, func(d *node) *map[string]string { return &d.labels })
}

// Annotate sets an annotation of a node, or takes it away when the value is nil. False when it is so already.
func (c *Cluster) Annotate(now time.Duration, n int, key string, value *string) bool {
	return c.mark(now, n, key, value, func(d *node) *map[string]string { return &d.annotations })
}

func (c *Cluster) mark(now time.Duration, n int, key string, value *string, of func(*node) *map[string]string) bool {
	if n < 0 || n >= nodeLimit {
		return false
	}
	c.growNodes(n)
	to := of(&c.nodes[n])
	had, has := (*to)[key]
	if value == nil && !has || value != nil && has && had == *value {
		return false
	}
	next := maps.Clone(*to) // a clone of the cluster has the old one
	if value == nil {
		delete(next, key)
	} else {
		if next == nil {
			next = map[string]string{}
		}
		next[key] = *value
	}
	*to, c.nodes[n].marked = next, now
	c.changes++
	return true
}

// Marks are a node's labels and annotations, which must not be changed, and when they changed last.
func (c *Cluster) Marks(n int) (labels, annotations map[string]string, changed time.Duration) {
	if n < 0 || n >= len(c.nodes) {
		return nil, nil, 0
	}
	d := &c.nodes[n]
	return d.labels, d.annotations, d.marked
}

// Part has no daemon reach the API server until an instant. Kubelets and controllers do.
func (c *Cluster) Part(now, until time.Duration) {
	next := slices.Clone(c.parted) // clones share it
	if !c.Away(now) {
		next = append(next, Parting{From: now})
	}
	next[len(next)-1].Until = max(now, until)
	c.parted = next
}

// Parting is from when until when no daemon reaches the API server.
type Parting struct{ From, Until time.Duration }

// Parted are all partings so far, in their order, which must not be changed.
func (c *Cluster) Parted() []Parting { return c.parted }

// Away says whether no daemon reaches the API server.
func (c *Cluster) Away(now time.Duration) bool {
	return len(c.parted) > 0 && now < c.parted[len(c.parted)-1].Until
}
