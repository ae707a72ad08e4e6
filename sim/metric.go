package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// What metrics are of.
var (
	ofNode = []scn.SubjectKind{scn.Node, scn.AllNodes}
	ofPod  = []scn.SubjectKind{scn.Pod}
	ofKube = []scn.SubjectKind{scn.Kube}
	ofEC2  = []scn.SubjectKind{scn.EC2}
)

// Metric is something that a scenario can expect.
type Metric struct {
	Name string
	On   []scn.SubjectKind
	Flag bool // true or false; otherwise a number
	Doc  string
}

// Metrics are all metrics.
func Metrics() []Metric {
	m := []Metric{
		{"addresses.free", ofNode, false, "addresses that may be given away"},
		{"addresses.assigned", ofNode, false, "addresses of attachments"},
		{"addresses.cooling", ofNode, false, "addresses that cool down"},
		{"addresses.quarantined", ofNode, false, "addresses set aside"},
		{"addresses.total", ofNode, false, "all of them; without books those that EC2 has on the node's ENIs"},
		{"enis", ofNode, false, "ENIs that the node has in service; without books those that EC2 has attached"},
		{"enis.other-groups", ofNode, false, "its ENIs that have not the security groups of the primary one"},
		{"waiting", ofNode, false, "ADDs that wait for an address"},
		{"serving", ofNode, true, "the daemon answers"},
		{"impaired", ofNode, true, "the daemon gives a reason for bad health"},
		{"daemon.starts", ofNode, false, "daemons that have started since t=0"},
		{"plugin.version", ofNode, false, "protocol version of the plugin that was run last; 0: none has been"},
		{"pods.ready", ofNode, false, "pods that kubelet sees run"},
		{"pods.reachable", ofNode, false, "pods that run and that a packet from the VPC reaches, and back"},
		{"calls.total", ofNode, false, "the node's EC2 requests, those before t=0 too"},
		{"calls.throttled", ofNode, false, "those that were throttled"},
		{"calls.failed", ofNode, false, "those that were refused otherwise"},
		{"calls.lost", ofNode, false, "those whose answer was lost"},
		{"calls.denied", ofNode, false, "those that the instance's role does not allow (UnauthorizedOperation)"},
		{"ready", ofPod, true, "kubelet sees the pod run"},
		{"reachable", ofPod, true, "a packet from the VPC gets there and back"},
		{"pods.ready", ofKube, false, "pods whose status is Running"},
		{"pods.total", ofKube, false, "pod objects"},
		{"pods.made", ofKube, false, "pod objects that were ever made, those of start lines too"},
		{"pods.unready", ofKube, false, "pod objects that start, wait or go: 0 once every pod that is wanted runs"},
		{"pairs.tried", ofKube, false,
			"pods that ask another pod: each one once, each ENI of a node every other of it, each node every other " +
				"(up to 64)"},
		{"pairs.unreachable", ofKube, false, "those that get no answer, with the source that the other one expects"},
		{"flows.open", ofKube, false, "flows that hold-flows has open"},
		{"flows.cut", ofKube, false,
			"those that were reset, or without an answer for more than 30 s, while their pod lived"},
		{"calls.total", ofEC2, false, "requests since t=0"},
		{"calls.throttled", ofEC2, false, "requests that were throttled since t=0"},
		{"calls.failed", ofEC2, false, "requests that were refused otherwise since t=0"},
		{"calls.lost", ofEC2, false, "requests whose answer was lost since t=0"},
		{"calls.mutating", ofEC2, false, "requests that change something, refused ones too, since t=0"},
		{"enis.available", ofEC2, false, "ENIs that are attached to nothing"},
		{"enis.total", ofEC2, false, "ENIs"},
	}
	for _, c := range verb.Requests {
		m = append(m, Metric{"calls." + c, ofEC2, false, "requests since t=0"},
			Metric{"failed." + c, ofEC2, false, "those that were refused otherwise than by throttling"})
	}
	for n := 1; n <= mostSubnets; n++ {
		m = append(m, Metric{fmt.Sprintf("subnet-%d.free", n), ofEC2, false,
			"addresses that EC2 could still give in the subnet; subnet-1 is the cluster's first one"},
			Metric{fmt.Sprintf("subnet-%d.enis", n), ofEC2, false, "ENIs in the subnet"},
			Metric{fmt.Sprintf("subnet-%d.enis", n), ofNode, false, "ENIs in the subnet that EC2 has attached to the node"})
	}
	for _, p := range ipam.Marks() {
		m = append(m, Metric{"reached." + p, ofNode, false, "how often its daemons came there since t=0"})
	}
	return m
}

// subnet is which of the cluster's subnets a metric is about; 0 is none.
func (m *Metric) subnet() int {
	n, _, _ := SubnetMetric(m.Name)
	return n
}

// SubnetMetric takes the name of a metric apart that is about one of the cluster's subnets, which count from 1.
func SubnetMetric(name string) (subnet int, of string, ok bool) {
	number, of, ok := strings.Cut(strings.TrimPrefix(name, "subnet-"), ".")
	if ok = ok && strings.HasPrefix(name, "subnet-"); !ok {
		return 0, "", false
	}
	subnet, err := strconv.Atoi(number)
	return subnet, of, err == nil && subnet > 0
}
