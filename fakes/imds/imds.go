package imds

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// View is everything that the tree is made of.
type View struct {
	ec2.IMDS
	Extras
	Role    string    // the instance profile's role; "": none
	Updated time.Time // since when the role's credentials are valid
	Expires time.Time // until when
	Epoch   time.Time // the model's beginning, which Instance.Launched counts from
	// Sign makes the signatures of the identity document; nil: there are none, and their paths are a 404.
	Sign func(kind Signature, document string) string
}

// Extras is what an instance's metadata says and the model of EC2 does not know. The zero Extras is an on-demand instance without
// notices, tags, user data and key pair.
type Extras struct {
	Image    string // ami-id; "": the instance's, or that of the user guide's examples
	UserData string // as the instance reads it: not in base64; "": none
	KeyName  string // public-keys/0; "": no key pair
	Key      string // public-keys/0/openssh-key: the key as in authorized_keys
	Spot     bool   // instance-life-cycle is spot
	// Tags is InstanceMetadataTags=enabled: tags/instance has the instance's tags whose keys can be read as a path.
	Tags bool
	// Interruption is the spot interruption notice, which comes two minutes before ("Spot Instance interruption notices").
	Interruption *Interruption
	// Rebalance is when a rebalance recommendation was given ("EC2 instance rebalance recommendations"); zero: there is none.
	Rebalance time.Time
	// Lifecycle is the state that an Auto Scaling group moves the instance to, as InService or Terminated ("Retrieve the target
	// lifecycle state through instance metadata"); "": the instance is in no group.
	Lifecycle string
	Scheduled []Event // events/maintenance/scheduled
	Past      []Event // events/maintenance/history
}

// Interruption is what will happen to a spot instance.
type Interruption struct {
	Action string // terminate, stop or hibernate
	At     time.Time
}

// Event is a scheduled event ("View scheduled events for your instances").
type Event struct {
	ID          string // instance-event-...
	Code        string // instance-reboot, system-reboot, system-maintenance, instance-retirement, instance-stop
	Description string
	State       string // active, completed, canceled
	NotBefore   time.Time
	NotAfter    time.Time // zero: none
}

// Signature is one of the texts beside the identity document.
type Signature uint8

const (
	Plain   Signature = iota // signature: base64 of a signature of the document
	PKCS7                    // pkcs7: base64 of a PKCS #7 message with the document in it
	RSA2048                  // rsa2048: likewise
)

// Reply answers a read.
type Reply struct {
	Status int    // of HTTP: 200 or 404
	Type   string // of the content, unless the status is 404
	Text   string // empty unless the status is 200
}
