package judge

import (
	"strconv"
	"time"
)

// ID names an invariant. The zero ID is none.
type ID uint8

// The invariants, in the order of the catalogue.
const (
	I1 ID = iota + 1
	I2
	I3
	I4
	I5
	I6
	I7
	I8
	I9
	I10
	I11
	I12
	I13
	I14
	I15
	I16
	I17
	I18
	I19
	I20
	ids = iota + 1
)

func (id ID) String() string { return "I" + strconv.Itoa(int(id)) }

// When says at which moments an invariant has to hold.
type When uint8

const (
	Never    When = iota + 1 // never broken: judged at edges
	Repaired                 // may break for Bound, not longer: judged on every snapshot
	Settled                  // holds once faults have ended and the world is quiet: judged on the settled cut
)

var whenNames = [...]string{"?", "never broken", "repaired within a bound", "once settled"}

func (w When) String() string {
	if int(w) >= len(whenNames) {
		return whenNames[0]
	}
	return whenNames[w]
}

// Invariant is one entry of the catalogue.
type Invariant struct {
	ID     ID
	Phrase string // what a scenario quotes, exactly
	When   When
	Rule   string        // the rules of docs/architecture.md that it guards, as "A D"; "2" is the effect contract
	Doc    string        // a sentence or two for people
	Bound  time.Duration // Repaired: the default bound
	Needs  Source        // what it is judged from: without one of them it is not judged
	Deeper string        // what of it is judged with books only; "" is nothing. With Books in Needs that is all
}

// Catalogue lists all invariants, I1 first.
func Catalogue() []Invariant {
	return []Invariant{
		{I1, "no address is in two live namespaces", Never, "B D", "Judged when a pod's plan was applied: no other live namespace, on any node, has the address.", 0, Kernel | Runtime, ""},
		{I2, "no pod is given an address the kernel still uses", Never, "B", "Judged when a successful ADD leaves: at that moment no link, namespace or address of the kernel uses the address for somebody else.", 0, Kernel | Runtime, ""},
		{I3, "every assigned address is on an attached eni", Repaired, "A", "Every assigned row's address is a secondary of an ENI that EC2 has attached. A stranger may detach one; the node has to notice.", 5 * time.Minute, EC2 | Books, ""},
		{I4, "no eni is freed with a live pod on it", Never, "A K", "By the daemon's own act no ENI is detached and no address unassigned while a live pod uses it, whatever the daemon believed.", 0, EC2 | Runtime, ""},
		{I5, "nothing is leaked", Settled, "I K", "No address, ENI, rule, route or veth is left that belongs to nobody, no row is assigned to a pod that is gone, and no address is quarantined that nothing uses.", 0, Kernel | EC2 | Runtime, "rows of pods that are gone, idle quarantine, and intents and cool-downs that never end"},
		{I6, "every del ends in success", Settled, "C F", "A DEL may fail for a time, but it is answered with success in the end; its errors avoid the words that go-cni takes for success.", 0, Runtime, "DELs that wait on the node's disk"},
		{I7, "no address is reused before its cool-down", Never, "D", "Judged by the auditor's own memory, which survives the daemon: a released address serves another attachment, or goes back to EC2, only IP_COOLDOWN_PERIOD later, and serves one only after the daemon that ended its cool-down has had conntrack forget its flows.", 0, Runtime, "that conntrack has forgotten the flows"},
		{I8, "ec2 calls stay within the budget", Never, "L", "The cluster makes no more EC2 calls than the scenario allows.", 0, EC2, ""},
		{I9, "a crash settles like no crash", Settled, "C I", "Wherever the daemon dies, the settled node has the pods, ENIs and addresses that it would have had, no open intent and no leak.", 0, Kernel | EC2 | Runtime | Books, ""},
		{I10, "every live pod is reachable", Repaired, "E G H", "A live pod keeps its address and its gateway, and answers packets, from the VPC and from other pods of its node. What a stranger broke is repaired while the daemon runs.", 90 * time.Second, Runtime | Packets, ""},
		{I11, "warm targets are met", Settled, "L", "Free addresses lie between what the warm targets ask for and what they let the node keep, as far as limits, MAX_ENI and the subnet allow.", 0, EC2 | Books, ""},
		{I12, "the address books balance", Settled, "A I", "Free, assigned, cooling, quarantined and covered by open intents: together they are exactly what the cloud has given, and assigned ones are on the node's ENIs.", 0, EC2 | Books, ""},
		{I13, "the effect contract holds", Never, "2", "Nothing is answered, called or applied before what it rests on is durable and done; one outcome per effect, one reply per request and in time.", 0, Books, ""},
		{I14, "nothing that is not ours is touched", Never, "A I", "Judged when EC2 gets a request, a plan was applied and an ADD succeeds: an ENI that is tagged no_manage, of another kind (trunk, EFA), attached to another instance, untagged where those are to be left alone, or left behind by a node of another cluster or in another VPC, is neither changed, configured nor given to a pod.", 0, EC2 | Runtime, "the links that plans configure"},
		{I15, "no eni is made while room covers demand", Never, "L", "Judged when a daemon first wants CreateNetworkInterface: what lives and waits, with the warm targets, needs more addresses than the ENIs that are attached or under way can carry.", 0, Books, ""},
		{I16, "a daemon that runs serves", Repaired, "F", "A daemon that was started answers ADDs within the bound, after restarts, kills and upgrades too, whoever else does not answer; but where neither metadata nor the records of this boot say which instance it is on, the bound counts from metadata's first answer. Where nobody tells what it believes, its socket, port or health service says it, and that its first pods start; what it printed last is told.", 3 * time.Minute, Kernel | Runtime, ""},
		{I17, "no flow of a living pod is cut", Never, "C H", "Judged while flows are held: a TCP connection from the VPC to a pod is not reset and does not go without an answer for more than 30 seconds before its pod ends, whether or not a daemon runs.", 0, Runtime | Packets, ""},
		{I18, "what third parties put on a node stays", Never, "H", "Judged on every snapshot once a scenario has put something on a node that is not the CNI's: iptables rules, nftables, marks of connections, routes, rules and sysctls stay as they were left, whoever starts, upgrades or ends the daemon.", 0, Kernel, ""},
		{I19, "no eni is made in a subnet that is not for pods", Never, "L", "Judged when EC2 gets a CreateNetworkInterface: with ENABLE_SUBNET_DISCOVERY its subnet is in the node's VPC and zone, and is the node's own or tagged kubernetes.io/role/cni, not with 0 and not for other clusters alone, by tags of two minutes ago or later; without it, it is the node's own. With AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG it is the one of the node's ENIConfig, of two minutes ago or later unless the API server was away, and no AssignPrivateIpAddresses is for the primary ENI.", 0, EC2, ""},
		{I20, "every eni has the security groups of the primary one", Settled, "H", "The ENIs that the CNI has made and EC2 has attached have the groups that the instance's primary ENI has; with AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG those of its ENIConfig, if that has some and had them when the ENI was made.", 0, EC2, ""},
	}
}

// Phrase is how the invariant is called in scenarios and reports.
func (id ID) Phrase() string {
	for _, i := range Catalogue() {
		if i.ID == id {
			return i.Phrase
		}
	}
	return id.String()
}

// ByPhrase finds an invariant by its exact phrase.
func ByPhrase(phrase string) (Invariant, bool) {
	for _, i := range Catalogue() {
		if i.Phrase == phrase {
			return i, true
		}
	}
	return Invariant{}, false
}

// Phrases of all invariants, I1 first.
func Phrases() []string {
	all := Catalogue()
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Phrase
	}
	return out
}
