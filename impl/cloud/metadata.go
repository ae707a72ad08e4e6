package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/enilab/enilab/impl/ipam"
)

// macs is the folder of a MAC's leaves (EC2 user guide, "Instance metadata categories").
const macs = "network/interfaces/macs/"

// place is what never changes while an ENI is attached at a device index.
type place struct {
	device, card int
	subnet       string
	cidr         netip.Prefix
}

// Metadata reads this instance's identity and its attached ENIs (LookIMDS), one leaf after another. A MAC whose leaves are not there
// yet, or no more, is Partial and has nothing but its MAC. ENIs on further network cards are left out: their device indexes begin
// anew. The view is whole, or there is an error.
func (c *Cloud) Metadata(ctx context.Context) (*ipam.IMDS, error) {
	self, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	v := &ipam.IMDS{Instance: self}
	if v.Instance.VPC, err = c.vpc(ctx, self.PrimaryMAC); err != nil {
		return nil, err
	}
	if v.Groups, err = c.groups(ctx, self.PrimaryMAC); err != nil {
		return nil, err
	}
	list, err := c.listed(ctx, self.PrimaryMAC)
	if err != nil {
		return nil, err
	}
	for _, mac := range list {
		e, card, err := c.interfaceOf(ctx, mac)
		if err != nil {
			return nil, err
		}
		if card == 0 {
			v.ENIs = append(v.ENIs, e)
		}
	}
	slices.SortFunc(v.ENIs, byDevice)
	c.forgetPlaces(v.ENIs)
	return v, nil
}

// byDevice puts Partial ones, whose index is unknown, last.
func byDevice(a, b ipam.ENI) int {
	switch {
	case a.Partial != b.Partial && a.Partial:
		return 1
	case a.Partial != b.Partial:
		return -1
	case a.Device != b.Device:
		return a.Device - b.Device
	}
	return compare(a.MAC, b.MAC)
}

// identity is what never changes about this instance, read once; its VPC is empty.
func (c *Cloud) identity(ctx context.Context) (ipam.Instance, error) {
	c.mu.Lock()
	have := c.self
	c.mu.Unlock()
	if have != nil {
		return *have, nil
	}
	var i ipam.Instance
	var address string
	for _, leaf := range []struct {
		path string
		into *string
	}{{"instance-id", &i.ID}, {"instance-type", &i.Type}, {"placement/availability-zone", &i.Zone}, {"mac", &i.PrimaryMAC}, {"local-ipv4", &address}} {
		if err := c.must(ctx, leaf.path, leaf.into); err != nil {
			return i, err
		}
	}
	if _, err := net.ParseMAC(i.PrimaryMAC); err != nil {
		return i, fmt.Errorf("metadata mac: %w", err)
	}
	var err error
	if i.Address, err = netip.ParseAddr(address); err != nil {
		return i, fmt.Errorf("metadata local-ipv4: %w", err)
	}
	if err = c.must(ctx, macs+i.PrimaryMAC+"/subnet-id", &i.Subnet); err != nil {
		return i, err
	}
	if i.Limits, err = c.limitsOf(ctx, i.Type); err != nil {
		return i, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = &i
	return i, nil
}

// vpc are the VPC's CIDRs, which can be added to.
func (c *Cloud) vpc(ctx context.Context, mac string) ([]netip.Prefix, error) {
	path := macs + mac + "/vpc-ipv4-cidr-blocks"
	list, _, err := c.lines(ctx, path)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w", path, err)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("metadata %s: expected at least one CIDR, there is none", path)
	}
	return out, nil
}

// groups are the security groups of the primary interface, which every interface that the node makes gets.
func (c *Cloud) groups(ctx context.Context, mac string) ([]string, error) {
	list, found, err := c.lines(ctx, macs+mac+"/security-group-ids")
	if err == nil && (!found || len(list) == 0) {
		err = fmt.Errorf("metadata names no security groups for the primary interface %s", mac)
	}
	return list, err
}

// listed are the MACs that metadata lists. The primary's is always there: a list without it is not believed.
func (c *Cloud) listed(ctx context.Context, primary string) ([]string, error) {
	list, _, err := c.lines(ctx, macs)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "/")
		if _, err := net.ParseMAC(list[i]); err != nil {
			return nil, fmt.Errorf("metadata %s: %w", macs, err)
		}
	}
	if !slices.Contains(list, primary) {
		return nil, fmt.Errorf("metadata %s: the primary interface %s is not in the list of %d", macs, primary, len(list))
	}
	return list, nil
}

// interfaceOf reads a MAC's leaves; card is not 0 for one that is none of our business.
func (c *Cloud) interfaceOf(ctx context.Context, mac string) (e ipam.ENI, card int, err error) {
	folder, partial := macs+mac+"/", ipam.ENI{MAC: mac, Partial: true}
	id, found, err := c.leaf(ctx, folder+"interface-id")
	if err != nil || !found {
		return partial, 0, err
	}
	device, found, err := c.number(ctx, folder+"device-number")
	if err != nil || !found {
		return partial, 0, err
	}
	p, found, err := c.placeOf(ctx, folder, id, device)
	if err != nil || !found || p.card != 0 {
		return partial, p.card, err
	}
	list, found, err := c.lines(ctx, folder+"local-ipv4s")
	if err != nil {
		return partial, 0, err
	}
	e = ipam.ENI{ID: id, MAC: mac, Device: device, Subnet: p.subnet, CIDR: p.cidr, Partial: !found} // an Elastic@Network@Adapter has none
	for i, text := range list {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return partial, 0, fmt.Errorf("metadata %slocal-ipv4s: %w", folder, err)
		}
		if i == 0 {
			e.Primary = a
		} else {
			e.Addresses = append(e.Addresses, a)
		}
	}
	if list, _, err = c.lines(ctx, folder+"ipv4-prefix"); err != nil { // absent where there is none
		return partial, 0, err
	}
	for _, text := range list {
		p, err := parsePrefix(text)
		if err != nil {
			return partial, 0, fmt.Errorf("metadata %sipv4-prefix: %w", folder, err)
		}
		e.Prefixes = append(e.Prefixes, p)
	}
	return e, 0, nil
}

// placeOf reads where an ENI is, once: an ENI never changes its subnet, nor a subnet its CIDR.
func (c *Cloud) placeOf(ctx context.Context, folder, id string, device int) (place, bool, error) {
	c.mu.Lock()
	p, known := c.places[id]
	c.mu.Unlock()
	if known && p.device == device {
		return p, true, nil
	}
	p = place{device: device}
	card, _, err := c.number(ctx, folder+"network-card") // absent on types with one card
	if err != nil {
		return p, false, err
	}
	p.card = card
	if card == 0 {
		var found bool
		if p.subnet, found, err = c.leaf(ctx, folder+"subnet-id"); err != nil || !found {
			return p, false, err
		}
		text, found, err := c.leaf(ctx, folder+"subnet-ipv4-cidr-block")
		if err != nil || !found {
			return p, false, err
		}
		if p.cidr, err = netip.ParsePrefix(text); err != nil {
			return p, false, fmt.Errorf("metadata %ssubnet-ipv4-cidr-block: %w", folder, err)
		}
		c.keepCIDR(p.subnet, p.cidr)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[id] = p
	return p, true, nil
}

// forgetPlaces keeps the places of the ENIs that are still there: IDs come and go for as long as a node lives.
func (c *Cloud) forgetPlaces(list []ipam.ENI) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.places {
		if p.card == 0 && !slices.ContainsFunc(list, func(e ipam.ENI) bool { return e.ID == id }) {
			delete(c.places, id)
		}
	}
}

// must reads a leaf that every instance has.
func (c *Cloud) must(ctx context.Context, path string, into *string) error {
	text, found, err := c.leaf(ctx, path)
	if err == nil && !found {
		err = fmt.Errorf("metadata has no %s: expected on every instance", path)
	}
	*into = text
	return err
}

func (c *Cloud) number(ctx context.Context, path string) (int, bool, error) {
	text, found, err := c.leaf(ctx, path)
	if err != nil || !found {
		return 0, false, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, false, fmt.Errorf("metadata %s is %q: expected a number", path, text)
	}
	return n, true, nil
}

// lines is a leaf with a value per line, or a folder; nothing in it is the same as not there.
func (c *Cloud) lines(ctx context.Context, path string) ([]string, bool, error) {
	text, found, err := c.leaf(ctx, path)
	return strings.Fields(text), found, err
}

// leaf reads one path; found is false for 404 and for a leaf without text.
func (c *Cloud) leaf(ctx context.Context, path string) (text string, found bool, err error) {
	text, err = c.read(ctx, path)
	if unauthorized(err) { // the token was too old by metadata's clock; there is a new one now
		text, err = c.read(ctx, path)
	}
	switch {
	case status(err) == http.StatusNotFound:
		return "", false, nil
	case err != nil:
		return "", false, said(path, err)
	}
	return text, text != "", nil
}

func (c *Cloud) read(ctx context.Context, path string) (string, error) {
	r, err := c.imds.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if err != nil {
		return "", err
	}
	defer r.Content.Close()
	body, err := io.ReadAll(r.Content)
	return strings.TrimSpace(string(body)), err
}

// said is metadata's refusal, or why there is no answer.
func said(path string, err error) error {
	if s := status(err); s != 0 {
		return fmt.Errorf("metadata %s: HTTP %d", path, s)
	}
	short := shortened(err)
	if short == err {
		for u := errors.Unwrap(err); u != nil; u = errors.Unwrap(u) { // the innermost says it
			short = u
		}
		return fmt.Errorf("metadata %s: %w", path, short)
	}
	return short
}
