package judge

import (
	"fmt"
	"slices"
	"time"
)

// Foreign is a thing on a node that a third party has put there: a firewall, a service proxy, an administrator.
type Foreign struct {
	Name string // what a person calls it
	Was  string // as the third party left it
	Is   string // as it is; empty: it is gone
}

// thirdParty judges that what third parties have put on a node is as they left it (I18). Each thing is reported once,
// since it is not put back.
func (a *Auditor) thirdParty(now time.Duration, c *Snapshot) {
	for i := range c.ThirdParty {
		f := &c.ThirdParty[i]
		a.look(I18)
		n := a.node(c.Node)
		if f.Is == f.Was || slices.Contains(n.foreign, f.Name) {
			continue
		}
		n.foreign = append(n.foreign, f.Name)
		a.breaks(I18, now, c.Node, "%s, which a third party put on node-%d, %s: expected it to stay as it was left", f.Name, c.Node, f.became())
	}
}

func (f *Foreign) became() string {
	if f.Is == "" {
		return fmt.Sprintf("is gone (it was %s)", f.Was)
	}
	return fmt.Sprintf("was %s and is %s", f.Was, f.Is)
}
