package ec2

// Limits are what an instance type allows.
type Limits struct {
	// ENIs is how many network interfaces the default network card (index 0) takes, the primary included: what software that knows
	// only that card may have, and all there is on a type with one card. MaximumENIs counts all cards.
	ENIs       int
	IPv4PerENI int // private IPv4 addresses per interface, its primary address included; a prefix uses as much as an address
	IPv6PerENI int
	// Cards is the number of network cards, each of which takes ENIs interfaces ("Network cards" of the EC2 user guide; no type of the
	// table has cards that differ). 0 counts as one.
	Cards int
	Trunk bool // takes a trunk interface: security groups for pods (EKS user guide)
}

// MaximumENIs is how many interfaces all network cards take together: the MaximumNetworkInterfaces of DescribeInstanceTypes.
func (l Limits) MaximumENIs() int { return l.ENIs * max(l.Cards, 1) }

// LimitsOf looks the limits of an instance type up in the catalogue.
func LimitsOf(instanceType string) (Limits, bool) {
	t, ok := TypeOf(instanceType)
	return t.Limits, ok
}
