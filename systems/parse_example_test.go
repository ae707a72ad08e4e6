package systems_test

import (
	"fmt"

	"github.com/enilab/enilab/systems"
)

// A description says what a CNI needs of a node, for ranges of its versions.
func ExampleParse() {
	d, err := systems.Parse("handout.yaml", []byte(`
name: handout
about: A daemon that hands out addresses and a plugin that asks it.
files:
  - {from: addressd, to: /app/addressd}
  - {from: ask, to: /opt/cni/bin/ask}
  - {from: ptp, to: /opt/cni/bin/ptp}
node: {prefixes: 1}
conflist:
  name: 10-handout.conflist
  words: |
    {"cniVersion": "1.0.0", "name": "handout", "plugins": [{"type": "ptp", "ipam": {"type": "ask"}}]}
daemon:
  argv: [/app/addressd, "${POD_RANGE}", /run/handout.sock]
  serves: {unix: /run/handout.sock, within: 10s}
`))
	if err != nil {
		fmt.Println(err) // each mistake with its line
		return
	}
	s, err := d.Of("1.2.0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name, s.Version, s.Daemon.Argv)
	// Output: handout 1.2.0 [/app/addressd ${POD_RANGE} /run/handout.sock]
}
