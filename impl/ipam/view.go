package ipam

// View is what STATUS, metrics, introspection and audit read. It is filled by Node.View.
type View struct {
	Serving  bool     // ADD can be answered
	Stopping bool     // SIGTERM was seen
	Named    bool     // metadata or the records of this boot say which instance it is on
	Surveyed bool     // EC2 has said what this node has: before that the node asks it for nothing
	Reasons  []string // why pods cannot be taken, or how the node is impaired (rule J); empty when all is well

	Free, Assigned, Cooling, Quarantined int // addresses
	Taken                                int // quarantined ones that EC2 has taken back: they are on no ENI
	Homeless                             int // assigned ones that no ENI is known to have; EC2 is asked
	Covered                              int // addresses that open intents speak of: of ENIs not ready or draining, or about to be unassigned
	Prefixes                             Delegation
	Waiting                              int // ADDs that wait for an address
	Running                              int // operations and EC2 calls under way
	Intents                              int // open intents
	ENIs                                 []ViewENI
	Others                               []ViewOther // attached ENIs that are not ours, or of which that is not known yet

	Settings Settings
	Limits   Limits
}

// ViewENI is one ENI as the node believes it to be.
type ViewENI struct {
	ID, MAC   string
	Device    int
	Stage     Stage
	Total     int // secondaries
	Available int // free ones
	InUse     int // assigned, cooling or quarantined ones
	Prefixes  int // each takes the place of a secondary
	Prefixed  int // of Total, addresses that these carry
	Subnet    string
	Excluded  bool // it is kept from pods, by its subnet's tags or by custom networking: what is free there goes back
	Exhausted bool // EC2 has refused more in its subnet, and others come first
	Barred    bool // EC2 has refused to attach it, so often that it may never be
}

// ViewOther is an attached ENI that nothing is done to.
type ViewOther struct {
	ID, MAC string
	Device  int
	Why     string // empty: EC2 has not said its tags
}
