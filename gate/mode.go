package gate

import (
	"maps"
	"slices"

	"github.com/enilab/enilab/systems"
)

// modes are settings that make another supply of addresses, by what people call it.
var modes = map[string]map[string]string{
	"prefixes":          {prefixDelegation: "true", "WARM_PREFIX_TARGET": "1"},
	"custom-networking": {customNetworking: "true", "WARM_IP_TARGET": "2"},
}

// Modes are the names of all.
func Modes() []string { return slices.Sorted(maps.Keys(modes)) }

// inModes is Change in each mode that was asked for. A version that does not know what makes the mode is refused: what
// it plays instead would be called by the wrong name.
func (g *gating) inModes() (out []source, err error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(g.Modes))) {
		for _, key := range slices.Sorted(maps.Keys(modes[name])) {
			for _, s := range []*systems.System{g.from, g.to} {
				if !s.Knows(key) {
					return nil, invalid("--mode %s sets %s, which %s does not know: leave it out", name, key, called(s))
				}
			}
		}
		f, err := change()
		if err != nil {
			return nil, err
		}
		s := Shape{Settings: modes[name]}
		if f, err = s.Shaped(f, NodeType{Type: modeType}); err != nil {
			return nil, err
		}
		out = append(out, source{name: "gate/change-" + name + ".scn", data: []byte(f.String())})
	}
	return out, nil
}

// modeType carries what Change makes with one interface less for pods.
const modeType = "m5.xlarge"
