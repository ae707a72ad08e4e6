package node

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// flushNAT is "nft flush ruleset".
func (*kernel) flushNAT(none) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.FlushRuleset()
	if err := c.Flush(); err != nil && !missing(err) {
		return fmt.Errorf("flush nftables: %w", err)
	}
	return nil
}

var families = map[nftables.TableFamily]string{nftables.TableFamilyINet: "inet", nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6",
	nftables.TableFamilyARP: "arp", nftables.TableFamilyNetdev: "netdev", nftables.TableFamilyBridge: "bridge"}

func tables() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	list, err := c.ListTables()
	if err != nil && !missing(err) {
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

// missing says that the kernel has no nftables, and so no tables either.
func missing(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}
