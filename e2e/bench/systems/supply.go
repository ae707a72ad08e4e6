package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// The scenarios of -supply, on the type that has the most addresses: what a node's supply of addresses costs in requests to EC2, in both modes. Nothing
// but the supply differs, so that one system's requests can be held against another's.
const (
	supplyPods = 250
	supplyType = "m5.24xlarge"
)

// supplyModes are secondary addresses and prefixes, and the environment that asks for each.
var supplyModes = []struct{ name, config string }{
	{"addresses", "ENABLE_PREFIX_DELEGATION=false"},
	{"prefixes", "ENABLE_PREFIX_DELEGATION=true"},
}

// wave is a scenario in which a node gets a pod a second, all of them, and loses them as it got them.
func wave(config string) string {
	var b strings.Builder
	cluster(&b, fmt.Sprintf("A pod a second, from none to %d, and back.", supplyPods), config+" WARM_IP_TARGET=5", 1)
	full := supplyPods - 1 // seconds, and one pod is there at the start
	fmt.Fprintf(&b, "at 1s every 1s until %ds kube scale web %d step=1\n", full, supplyPods)
	fmt.Fprintf(&b, "at %ds within 3m expect kube pods.ready == %d\n", full+1, supplyPods)
	falls := full + 180
	fmt.Fprintf(&b, "at %ds every 1s until %ds kube scale web 0 step=1\n", falls+1, falls+supplyPods)
	fmt.Fprintf(&b, "at %ds within 3m expect kube pods.total == 0\n", falls+supplyPods+1)
	return b.String()
}

// crowd is a scenario in which an empty node gets all pods at once, with the settings that a daemon has when nobody says anything.
func crowd(config string) string {
	var b strings.Builder
	cluster(&b, fmt.Sprintf("%d pods at once.", supplyPods), config, supplyPods)
	fmt.Fprintf(&b, "at 1s expect kube pods.ready == %d\n", supplyPods)
	return b.String()
}

func cluster(b *strings.Builder, title, config string, pods int) {
	fmt.Fprintf(b, "# %s\n\ncluster nodes=1 type=%s subnet=10.0.128.0/17 runtime=containerd\nconfig %s\nstart pods web %d on node-1\n\n", title, supplyType, config, pods)
}

// writeSupply writes the scenarios into a folder, and gives their names.
func writeSupply(dir string) (names []string, err error) {
	for _, m := range supplyModes {
		for name, text := range map[string]string{"wave-" + m.name: wave(m.config), "crowd-" + m.name: crowd(m.config)} {
			if err := os.WriteFile(filepath.Join(dir, name+".scn"), []byte(text), 0o644); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// changes counts a run's requests that change something.
func changes(f *figures) (n float64) {
	for action, calls := range f.Calls {
		if a, known := ec2.ParseAction(action); known && a.Mutates() {
			n += float64(calls)
		}
	}
	return n
}

// supplyRows are what -supply compares.
func supplyRows() (out []row) {
	for _, m := range supplyModes {
		out = append(out,
			row{"wave-" + m.name, m.name + ": one pod a second, 0 to 250 and back: requests that change something", changes},
			row{"wave-" + m.name, m.name + ": ADD, p50, ms", func(f *figures) float64 { return 1000 * f.Add }},
			row{"wave-" + m.name, m.name + ": ADDs that failed", func(f *figures) float64 { return float64(f.Failed) }},
			row{"wave-" + m.name, m.name + ": memory of the daemon, at most, MB", func(f *figures) float64 { return float64(f.Memory) / 1e6 }},
			row{"crowd-" + m.name, m.name + ": 250 pods at once, from an empty node until all run, s", func(f *figures) float64 { return f.Ready }},
			row{"crowd-" + m.name, m.name + ": 250 pods at once: requests that change something", changes})
	}
	return out
}
