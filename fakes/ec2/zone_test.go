package ec2

import (
	"fmt"
	"testing"
)

func TestZonesAndRegions(t *testing.T) {
	w := newWorld(t)
	zones := func(r Request) string {
		r.Action = DescribeAvailabilityZones
		return fmt.Sprint(w.do(r).Zones)
	}
	const a, b = "{us-west-2a usw2-az1 us-west-2}", "{us-west-2b usw2-az2 us-west-2}"
	for _, row := range []struct {
		name string
		ask  Request
		want string
	}{
		{"all, each once", Request{}, "[" + a + " " + b + "]"},
		{"by name, in the order asked for", Request{Zones: []string{"us-west-2b", "us-west-2a"}}, "[" + b + " " + a + "]"},
		{"by ID", Request{ZoneIDs: []string{"usw2-az2"}}, "[" + b + "]"},
	} {
		if got := zones(row.ask); got != row.want {
			t.Errorf("%s: found %s, expected %s", row.name, got, row.want)
		}
	}
	w.refused(Request{Action: DescribeAvailabilityZones, Zones: []string{"us-west-2a", "us-west-2c"}}, "InvalidParameterValue")
	w.refused(Request{Action: DescribeAvailabilityZones, ZoneIDs: []string{""}}, "InvalidParameterValue")
	for _, r := range []Request{{}, {Regions: []string{"us-west-2"}}} {
		r.Action = DescribeRegions
		if got := fmt.Sprint(w.do(r).Regions); got != "[us-west-2]" {
			t.Errorf("regions: found %s", got)
		}
	}
	w.refused(Request{Action: DescribeRegions, Regions: []string{"us-west-2", "eu-west-1"}}, "InvalidParameterValue")
}
