package server

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/fakes/ec2"
)

// A Describe without filters, identifiers and paging is charged to the smaller bucket, which is empty here; any of the three spares that.
func TestUnfilteredIsChargedApart(t *testing.T) {
	w := newWorld(t, func(cfg *ec2.Config) {
		for a := range cfg.Throttle.Unfiltered {
			cfg.Throttle.Unfiltered[a] = ec2.Bucket{Capacity: -1}
		}
	})
	zone := []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"us-west-2a"}}}
	rows := []struct {
		name string
		in   sdk.DescribeSubnetsInput
		code string
	}{
		{"everything", sdk.DescribeSubnetsInput{}, "RequestLimitExceeded"},
		{"pages", sdk.DescribeSubnetsInput{MaxResults: aws.Int32(5)}, ""},
		{"filtered", sdk.DescribeSubnetsInput{Filters: zone}, ""},
		{"by one ID", sdk.DescribeSubnetsInput{SubnetIds: []string{string(plenty)}}, ""},
		{"by two IDs", sdk.DescribeSubnetsInput{SubnetIds: []string{string(plenty), string(tiny)}}, ""},
	}
	for _, row := range rows {
		_, err := w.DescribeSubnets(w.ctx(), &row.in)
		if got, _ := code(err); got != row.code {
			t.Errorf("%s: code %q, want %q (%v)", row.name, got, row.code, err)
		}
	}
}
