package cloud

import (
	"context"
	"fmt"
	"slices"
)

// mostTokens is how many creations' groups are remembered: far more than one node has under way.
const mostTokens = 64

// groups are the security groups of the primary ENI, which every new one gets (amazon-vpc-cni-k8s does the same), and those that a
// client token was used with: repeated with others, EC2 would refuse it (IdempotentParameterMismatch).
type groups struct {
	now    []string
	tokens []string // oldest first
	sent   [][]string
}

// groupsFor is what a creation with that token must ask for.
func (c *Cloud) groupsFor(ctx context.Context, token string) ([]string, error) {
	c.mu.Lock()
	sent, known := c.groups.of(token)
	now := c.groups.now
	c.mu.Unlock()
	if known {
		return sent, nil
	}
	if now == nil {
		self, err := c.identity(ctx)
		if err != nil {
			return nil, err
		}
		if now, err = c.readGroups(ctx, self.PrimaryMAC); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups.keep(token, now), nil
}

// readGroups asks metadata for the groups and remembers them.
func (c *Cloud) readGroups(ctx context.Context, mac string) ([]string, error) {
	list, found, err := c.lines(ctx, macs+mac+"/security-group-ids")
	if err != nil {
		return nil, err
	}
	if !found || len(list) == 0 {
		return nil, fmt.Errorf("metadata names no security groups for the primary interface %s", mac)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups.now = list
	return list, nil
}

func (g *groups) of(token string) ([]string, bool) {
	i := slices.Index(g.tokens, token)
	if i < 0 {
		return nil, false
	}
	return g.sent[i], true
}

// keep remembers what a token is sent with, unless that is known already.
func (g *groups) keep(token string, list []string) []string {
	if sent, known := g.of(token); known {
		return sent
	}
	if len(g.tokens) == mostTokens {
		g.tokens, g.sent = slices.Delete(g.tokens, 0, 1), slices.Delete(g.sent, 0, 1)
	}
	g.tokens, g.sent = append(g.tokens, token), append(g.sent, list)
	return list
}
