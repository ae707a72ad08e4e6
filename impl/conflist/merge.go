package conflist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// image are the plugins that come with this CNI, and the one that it takes out: a configuration of one of these chains
// no other project's plugin.
var image = []string{plugin, egress, "portmap", "bandwidth", "tuning", "loopback", "host-local"}

// egress is amazon-vpc-cni-k8s's plugin for the other address family.
const egress = "egress-cni"

// Merge is the list that takes the place of the one that is there, with everything in it that is another project's.
// Nothing, or space, is no list. An error says why that list cannot be understood: then it is not to be replaced, for
// what it chains would be switched off.
func Merge(there []byte, o Options) ([]byte, error) {
	if len(bytes.TrimSpace(there)) == 0 {
		return Make(o), nil
	}
	old, err := parse(there)
	if err != nil {
		return nil, err
	}
	if len(old.plugins) == 0 {
		return Make(o), nil
	}
	plugins, err := old.replaced(o)
	if err != nil {
		return nil, err
	}
	if !old.foreign() {
		return ours(plugins), nil
	}
	return indented(old.head(plugins)), nil
}

// list is one that is there.
type list struct {
	says    map[string]json.RawMessage // what it says of itself
	plugins []entry
}

// entry is one plugin of a list.
type entry struct {
	kind string
	raw  json.RawMessage
}

func parse(raw []byte) (l list, err error) {
	if err := json.Unmarshal(raw, &l.says); err != nil {
		return l, fmt.Errorf("expected a JSON object: %w", err)
	}
	var plugins []json.RawMessage
	if err := json.Unmarshal(l.says["plugins"], &plugins); err != nil {
		return l, fmt.Errorf("plugins: expected a list: %w", err)
	}
	for i, p := range plugins {
		var says map[string]json.RawMessage
		var kind string
		if json.Unmarshal(p, &says) != nil || json.Unmarshal(says["type"], &kind) != nil || kind == "" {
			return l, fmt.Errorf("plugins[%d]: expected an object with a type, found %.60s", i, p)
		}
		l.plugins = append(l.plugins, entry{kind, p})
	}
	return l, nil
}

// foreign says whether a plugin of another project is in the list.
func (l *list) foreign() bool {
	return slices.ContainsFunc(l.plugins, func(p entry) bool { return !slices.Contains(image, p.kind) })
}

// replaced are the plugins of the list with ours in their place: what is wanted and not there comes behind what it would follow in a list of ours.
func (l *list) replaced(o Options) (out []json.RawMessage, err error) {
	wanted := valid(o.Chained)
	kept := l.kept(wanted)
	at := slices.IndexFunc(kept, func(p entry) bool { return p.kind == plugin })
	if at < 0 {
		return nil, fmt.Errorf("expected a list with the plugin %s, found %s: it is another network's", plugin, l.kinds())
	}
	kept[at].raw = o.entry()
	for _, w := range wanted {
		if there := slices.IndexFunc(kept, func(p entry) bool { return p.standsFor(w) }); there >= 0 {
			at = max(at, there)
		} else {
			at++
			kept = slices.Insert(kept, at, entry{raw: w})
		}
	}
	for _, p := range kept {
		out = append(out, p.raw)
	}
	return out, nil
}

// kept are the plugins of the list that stay in it, each of ours once.
func (l *list) kept(wanted []json.RawMessage) (out []entry) {
	had := map[string]bool{}
	for _, p := range l.plugins {
		once := p.kind == plugin || p.defaults()
		if p.kind == egress || once && had[p.kind] || p.defaults() && !slices.ContainsFunc(wanted, p.says) {
			continue
		}
		had[p.kind] = had[p.kind] || once
		out = append(out, p)
	}
	return out
}

// defaults says whether the entry is what ours would be, word for word.
func (p *entry) defaults() bool {
	return slices.ContainsFunc([]json.RawMessage{Bandwidth(), NoIPv6()}, p.says)
}

// says compares what two entries mean.
func (p *entry) says(other json.RawMessage) bool {
	var a, b any
	return json.Unmarshal(p.raw, &a) == nil && json.Unmarshal(other, &b) == nil && reflect.DeepEqual(a, b)
}

// standsFor says whether the wanted plugin is there with this one. There may be several of tuning, each with its own sysctls.
func (p *entry) standsFor(wanted json.RawMessage) bool {
	var w struct{ Type string }
	return p.says(wanted) || json.Unmarshal(wanted, &w) == nil && w.Type == p.kind && p.kind != "tuning"
}

func (l *list) kinds() string {
	var out []string
	for _, p := range l.plugins {
		out = append(out, p.kind)
	}
	return strings.Join(out, ", ")
}

// head is what the list says of itself, with other plugins. A version that cannot be read is amazon-vpc-cni-k8s's.
func (l *list) head(plugins []json.RawMessage) map[string]any {
	out := map[string]any{}
	for k, v := range l.says {
		out[k] = v
	}
	var version string
	if json.Unmarshal(l.says["cniVersion"], &version) != nil || version == "" {
		out["cniVersion"] = "0.4.0"
	}
	out["name"], out["plugins"] = Network, plugins
	return out
}
