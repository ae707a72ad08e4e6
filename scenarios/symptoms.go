package scenarios

import (
	"strings"
	"unicode"

	"github.com/enilab/enilab/internal/spelling"
)

// Symptom is what an operator sees of an outage, and the scenarios that reproduce it.
type Symptom struct {
	// Seen is the message or the state, in the words in which it is searched for.
	Seen string
	// Scenarios are names of files here, without ending; the nearest one comes first.
	Scenarios []string
}

// Symptoms are the index: what is seen at night, to the incidents behind it. Sources are those of docs/incidents.md. README.md has them as a table.
func Symptoms() []Symptom {
	return []Symptom{
		{"FailedCreatePodSandBox: failed to assign an IP address to container", []string{"subnet-exhausted", "subnet-full", "packing"}},
		{"pods stay in ContainerCreating after aws-node restarted or was upgraded, although nodes have free addresses", []string{"upgrade", "metadata-silent"}},
		{"pods stay in ContainerCreating when many nodes start or scale up at once; RequestLimitExceeded", []string{"fleet-burst", "fleet-packing", "throttled-account"}},
		{"ENIs stay available and nobody deletes them; the subnet runs out of addresses", []string{"eni-leak", "throttled-account", "lost-replies"}},
		{"no route to host, or timeouts, to pods after aws-node restarted: their ENI was detached", []string{"socket-mismatch", "runtime-restart"}},
		{"no route to host to pods on secondary ENIs; ip rules have vanished (systemd-networkd, nm-cloud-setup)", []string{"drift", "drift-busy", "flows"}},
		{"pods cannot ping each other: the policy of iptables' FORWARD chain is DROP (Docker, a firewall)", []string{"forward-drop"}},
		{"pods lose the network after udev changed the host veth's MAC (MACAddressPolicy=persistent)", []string{"drift", "drift-unseen", "records-lost", "records-clock"}},
		{"connections break or hang while aws-node is rolled, upgraded or rolled back", []string{"flows", "upgrade"}},
		{"address already in use: a pod is given the address of another one that was force-deleted", []string{"force-delete"}},
		{"two pods have the same IP address", []string{"runtime-restart", "takeover", "force-delete"}},
		{"a new pod gets traffic of an old one: its address was given out again at once after a restart", []string{"upgrade", "records-lost", "kill-loop"}},
		{"pods hang in Terminating; failed to destroy network for sandbox, again and again", []string{"del-retries"}},
		{"addresses stay assigned to pods that are gone: the runtime calls a DEL that failed never again (CRI-O)", []string{"del-any-phase"}},
		{"a StatefulSet's pod that was made again has no network, or lost its gateway's ARP entry", []string{"statefulset-name-reuse"}},
		{"a running pod is cut off when another one's ADD has failed and is cleaned up", []string{"failed-add"}},
		{"InsufficientFreeAddressesInSubnet, InsufficientCidrBlocks", []string{"subnet-full", "subnet-exhausted"}},
		{"pods wait for an address although another subnet of the zone has many (ENABLE_SUBNET_DISCOVERY, kubernetes.io/role/cni)",
			[]string{"subnets", "subnets-excluded", "prefix-excluded", "subnets-again", "subnets-denied", "subnets-stale"}},
		{"Failed to get pod ENI config; pods wait, or get addresses of the wrong subnet, with AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG (ENIConfig)",
			[]string{"eniconfig-changed", "eniconfig-late", "custom-networking", "custom-switched"}},
		{"InvalidGroup.NotFound; pods on secondary ENIs keep a security group that the node has lost",
			[]string{"security-group-gone", "security-groups", "groups-unseen"}},
		{"PrivateIpAddressLimitExceeded in a loop", []string{"prefixes-adopted", "brownout"}},
		{"AttachmentLimitExceeded: ENIs are made and deleted again and again", []string{"attach-refused"}},
		{"InvalidParameterValue: Network interface is currently in use, when it is deleted", []string{"throttled-account", "socket-mismatch"}},
		{"UnauthorizedOperation: You are not authorized to perform this operation (IAM role, policy)", []string{"least-privilege", "role-and-clock"}},
		{"RequestExpired, AuthFailure: the node's clock is wrong", []string{"role-and-clock", "subnets-clock"}},
		{"instance metadata (IMDS, 169.254.169.254) does not answer, or throttles", []string{"metadata-silent", "silent-start"}},
		{"new pods are out of reach after a reboot, or after addresses were given back: metadata is stale", []string{"reboot", "stale-metadata", "stale-answers"}},
		{"pods are out of reach on nodes with ENABLE_IMDS_ONLY_MODE", []string{"imds-only"}},
		{"EC2 answers RequestTimeout, InternalError, ServiceUnavailable, or executes requests twice", []string{"brownout", "lost-replies", "twice-delivered", "unassign-done", "unassign-stale"}},
		{"InvalidNetworkInterfaceID.NotFound: an ENI was deleted or detached in the console or by a script", []string{"eni-removed", "link-gone", "silent-start"}},
		{"a pod lost its network because somebody unassigned its address in the console", []string{"stranger-unassigns"}},
		{"a firewall's, trunk or EFA interface (no_manage) is used, changed or deleted by the CNI", []string{"hands-off", "hands-off-alone"}},
		{"ENIs of another cluster or another node are deleted as leaked (CLUSTER_NAME)", []string{"neighbours-leak", "neighbour-held"}},
		{"iptables rules, marks, routes or sysctls of others are gone after aws-node restarted", []string{"third-party"}},
		{"ipam.json is empty, damaged or lost after a power cut", []string{"records-lost", "takeover"}},
		{"a node has many more ENIs than its pods need; CreateNetworkInterface again and again (WARM_IP_TARGET, MINIMUM_IP_TARGET)", []string{"packing", "churn", "room-wanted-back"}},
		{"AssignPrivateIpAddresses as often as pods start; RequestLimitExceeded in the whole account (WARM_IP_TARGET)",
			[]string{"pod-a-second"}},
		{"pods lose the network when a workload is scaled down and ENIs are given back", []string{"scale-down"}},
		{"addresses are free, yet the node uses none of them (quarantine, NET_ADMIN)", []string{"quarantine"}},
		{"pods of the CNI before cannot be reached or deleted after a change from amazon-vpc-cni-k8s", []string{"takeover", "prefixes-adopted"}},
	}
}

// FindSymptoms are those in which all words are, whatever their case, or words that are nearly spelt like them.
func FindSymptoms(words []string) []Symptom {
	var found []Symptom
	for _, s := range Symptoms() {
		if s.has(words) {
			found = append(found, s)
		}
	}
	return found
}

// shortest is how many letters a word has to have to be found misspelt: of shorter ones too many are near.
const shortest = 4

func (s *Symptom) has(words []string) bool {
	text := strings.ToLower(s.Seen + " " + strings.Join(s.Scenarios, " "))
	known := strings.FieldsFunc(text, notInWord)
	for _, phrase := range words {
		for _, w := range strings.FieldsFunc(strings.ToLower(phrase), notInWord) {
			if !strings.Contains(text, w) && (len(w) < shortest || spelling.Suggest(w, known) == "") {
				return false
			}
		}
	}
	return true
}

// notInWord says whether a letter divides words.
func notInWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.'
}
