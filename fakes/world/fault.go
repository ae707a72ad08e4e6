package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// ParseFault is ec2.ParseFault with the file's names for instances and subnets.
func (c *Cloud) ParseFault(now time.Duration, text string) (ec2.Fault, error) {
	words := strings.Fields(text)
	for i, w := range words {
		if name, ok := strings.CutPrefix(w, "node="); ok {
			id, ok := c.Instance(name)
			if !ok {
				return ec2.Fault{}, fmt.Errorf("fault %q: there is no instance %q in account %s, %s", strictyaml.Shortened(text), strictyaml.Shortened(name), c.Account.ID, c.Region.Name)
			}
			words[i] = "node=" + string(id)
		}
		if name, ok := strings.CutPrefix(w, "subnet="); ok {
			words[i] = "subnet=" + string(c.Region.SubnetID(name))
		}
	}
	f, err := ec2.ParseFault(now, strings.Join(words, " "))
	if err == nil && f.Subnet != "" && c.FreeAddresses(f.Subnet) < 0 {
		err = fmt.Errorf("fault %q: there is no subnet %q in account %s, %s", strictyaml.Shortened(text), f.Subnet, c.Account.ID, c.Region.Name)
	}
	return f, err
}

// Instance is an instance by its name in the file or its identifier.
func (c *Cloud) Instance(name string) (ec2.InstanceID, bool) {
	for i := range c.Nodes {
		if c.Nodes[i].Name == name {
			return c.Nodes[i].ID, true
		}
	}
	id := ec2.InstanceID(name)
	_, ok := c.InstanceOf(id)
	return id, ok
}

// Ledger is the cloud's without the calls that made it.
func (c *Cloud) Ledger() []ec2.LedgerRow {
	rows := c.LedgerRows()
	out := rows[:0]
	for _, r := range rows {
		for _, p := range c.past {
			if p.Action == r.Action && p.Node == r.Node && p.Outcome == r.Outcome && p.Code == r.Code {
				r.Calls -= p.Calls
			}
		}
		if r.Calls > 0 {
			out = append(out, r)
		}
	}
	return out
}
