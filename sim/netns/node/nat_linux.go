package node

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/nftables"

	"github.com/enilab/enilab/sim/interference"
)

var families = map[nftables.TableFamily]string{nftables.TableFamilyINet: "inet", nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6",
	nftables.TableFamilyARP: "arp", nftables.TableFamilyNetdev: "netdev", nftables.TableFamilyBridge: "bridge"}

func tables() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	list, err := c.ListTables()
	if err != nil && !interference.NoNFTables(err) {
		return nil, fmt.Errorf("list nftables: %w", err)
	}
	var out []string
	for _, t := range list {
		family, ok := families[t.Family]
		if !ok {
			family = strconv.Itoa(int(t.Family))
		}
		out = append(out, family+" "+t.Name)
	}
	slices.Sort(out)
	return out, nil
}
