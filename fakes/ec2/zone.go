package ec2

import (
	"slices"
	"strings"
)

// Zone is an availability zone as an answer shows it.
type Zone struct{ Name, ID, Region string }

// zones are those that the configuration names, in order of their names.
func (c *Cloud) zones() []Zone {
	names := []string{c.cfg.Zone}
	for i := range c.subnets {
		names = append(names, c.subnets[i].zone)
	}
	slices.Sort(names)
	var out []Zone
	for _, name := range slices.Compact(names) {
		out = append(out, Zone{name, ZoneID(c.cfg.Region, name), c.cfg.Region})
	}
	return out
}

// describeZones answers for all zones, or for those asked for by name or ID in that order.
func (c *Cloud) describeZones(r *Request) Response {
	p, all := success(), c.zones()
	if len(r.Zones)+len(r.ZoneIDs) == 0 {
		p.Zones = all
		return p
	}
	for _, name := range r.Zones {
		k := slices.IndexFunc(all, func(z Zone) bool { return z.Name == name })
		if k < 0 {
			return noSuchZone(name)
		}
		p.Zones = append(p.Zones, all[k])
	}
	for _, id := range r.ZoneIDs {
		k := slices.IndexFunc(all, func(z Zone) bool { return z.ID == id && id != "" })
		if k < 0 {
			return noSuchZone(id)
		}
		p.Zones = append(p.Zones, all[k])
	}
	return p
}

// describeRegions answers for the one region that a Cloud is in.
func (c *Cloud) describeRegions(r *Request) Response {
	for _, name := range r.Regions {
		if name != c.cfg.Region {
			return failure(codeValue, "Invalid region: ["+name+"]") // amazon-s3-tar-tool#7
		}
	}
	p := success()
	p.Regions = []string{c.cfg.Region}
	return p
}

// noSuchZone has the message of beeswithmachineguns#90.
func noSuchZone(name string) Response {
	return failure(codeValue, "Invalid availability zone: ["+name+"]")
}

// ZoneID is an identifier like usw2-az1 ("Availability Zone IDs"): here zone a is always az1, which differs between
// real accounts. A zone that is not the region and a letter has none.
func ZoneID(region, zone string) string {
	letter, ok := strings.CutPrefix(zone, region)
	parts := strings.Split(region, "-")
	if !ok || len(letter) != 1 || letter[0] < 'a' || letter[0] > 'i' || len(parts) < 3 {
		return ""
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for _, direction := range parts[1 : len(parts)-1] {
		for _, word := range [...]string{"north", "south", "central", "gov", "iso"} {
			if d, ok := strings.CutPrefix(direction, word); ok {
				b.WriteString(word[:1])
				direction = d
			}
		}
		if direction != "" {
			b.WriteString(direction[:1])
		}
	}
	b.WriteString(parts[len(parts)-1])
	b.WriteString("-az")
	b.WriteByte(letter[0] - 'a' + '1')
	return b.String()
}
