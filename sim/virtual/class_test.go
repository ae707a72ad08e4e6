package virtual

import (
	"testing"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// TestClassesAreTheDaemons: a code means the same in this world as to the daemon in production.
func TestClassesAreTheDaemons(t *testing.T) {
	for _, c := range []struct {
		code string
		http int
		want ipam.Class
	}{
		{"Throttling", 400, ipam.Throttled}, {"RequestLimitExceeded", 503, ipam.Throttled}, {"ExpiredToken", 400, ipam.Denied},
		{"AccessDenied", 403, ipam.Denied}, {"InternalError", 500, ipam.Unavailable}, {"InvalidParameterValue", 400, ipam.Invalid},
	} {
		if got := class(&ec2.Response{Code: c.code, HTTP: c.http}); got != c.want {
			t.Errorf("%s with HTTP %d is %v, expected %v", c.code, c.http, got, c.want)
		}
	}
}
