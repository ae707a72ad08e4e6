package imds

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// View is everything that the tree is made of.
type View struct {
	ec2.IMDS
	Role    string    // the instance profile's role; "": none
	Updated time.Time // since when the role's credentials are valid
	Expires time.Time // until when
}

// Reply answers a read.
type Reply struct {
	Status int // of HTTP: 200 or 404
	JSON   bool
	Text   string // empty unless the status is 200
}
