package judge

import (
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
)

// Tags of amazon-vpc-cni-k8s 1.23.1 (pkg/awsutils/awsutils.go).
const (
	TagNoManage = "node.k8s.amazonaws.com/no_manage"
	TagOwner    = "node.k8s.amazonaws.com/instance_id"
	TagCluster  = "cluster.k8s.amazonaws.com/name"
	TagCreated  = "node.k8s.amazonaws.com/createdAt"
)

// Tags of subnets by which amazon-vpc-cni-k8s 1.23.0 chooses among them (same file): TagRole is 1 or 0, and TagForCluster is followed by the
// name of a cluster.
const (
	TagRole       = "kubernetes.io/role/cni"
	TagForCluster = "cni.networking.k8s.aws/cluster/"
)

// Whose says whose an ENI is, by EC2's truth, for a node's daemon.
type Whose struct {
	Model          *ec2.Cloud
	Node           ec2.InstanceID
	Cluster        string  // its name, "" is none
	LeavesUntagged bool    // MANAGE_UNTAGGED_ENI is false
	Undiscovered   bool    // ENABLE_SUBNET_DISCOVERY is false
	Custom         *Custom // nil: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG is false
}

// NotOurs says why an ENI is none that the node may touch; "" is that it may.
func (w Whose) NotOurs(id ec2.ENIID) string {
	e, ok := w.Model.ENI(id)
	if !ok {
		return "" // it is gone: EC2 refuses whatever is done to it
	}
	made, manage := TagOf(&e, TagOwner), TagOf(&e, TagNoManage)
	here := e.Instance == w.Node
	switch {
	case here && primary(&e): // the instance cannot be without it
		return ""
	case e.Kind != ec2.Ordinary:
		return "its kind is " + e.Kind.String()
	case manage == "true":
		return "it is tagged " + TagNoManage
	case made == string(w.Node):
		return ""
	case e.Instance != "" && !here:
		return "it is attached to another instance"
	case made != "" && w.lives(ec2.InstanceID(made)):
		return "the instance that it was made for lives"
	case made == "" && manage == "" && w.LeavesUntagged:
		return "it is untagged, and MANAGE_UNTAGGED_ENI is false"
	case made != "" && !here:
		return elsewhere(w.Model, w.Cluster, &e)
	}
	return ""
}

// elsewhere says of an ENI that a CNI made why that was none of this cluster's; "" is that it may have been.
func elsewhere(m *ec2.Cloud, cluster string, e *ec2.ENI) string {
	switch {
	case TagOf(e, TagCluster) != cluster:
		return "it is another cluster's"
	case !Here(m, e):
		return "it is in another VPC"
	}
	return ""
}

// Here says whether an ENI is in the cluster's VPC, for which its world has a network. The cluster's subnet is the model's first one.
func Here(m *ec2.Cloud, e *ec2.ENI) bool { return e.VPC == m.Subnets()[0].VPC }

// OtherGroups are the ENIs of an instance's, made by its CNI and attached, that have not the security groups of its primary one.
func OtherGroups(m *ec2.Cloud, i ec2.InstanceID) (out []ec2.ENI) {
	var groups []string
	for n, id := range m.AttachedENIs(i) {
		e, _ := m.ENI(id)
		if n == 0 {
			groups = sorted(e.SecurityGroups)
		}
		if n > 0 && ours(&e, i) && !slices.Equal(sorted(e.SecurityGroups), groups) {
			out = append(out, e)
		}
	}
	return out
}

// primary says whether an attached ENI is its instance's first one.
func primary(e *ec2.ENI) bool { return e.DeviceIndex == 0 && e.NetworkCard == 0 }

// ours says whether an instance's CNI has made an ENI that is attached to it.
func ours(e *ec2.ENI, i ec2.InstanceID) bool {
	return e.Kind == ec2.Ordinary && e.NetworkCard == 0 && e.DeviceIndex > 0 && TagOf(e, TagOwner) == string(i) && TagOf(e, TagNoManage) != "true"
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// lives says whether there is such an instance, and not only its memory.
func (w Whose) lives(id ec2.InstanceID) bool {
	i, ok := w.Model.InstanceOf(id)
	return ok && i.State != "terminated"
}

// What a daemon does to an ENI beside its requests.
const (
	Configures = "configures the link of"
	Gives      = "gives a pod an address of"
)

// Mutates are what a request does to which ENI, for people; "" is nothing.
func (w Whose) Mutates(q *ec2.Request) (what string, id ec2.ENIID) {
	switch q.Action {
	case ec2.AttachNetworkInterface, ec2.ModifyNetworkInterfaceAttribute, ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface,
		ec2.AssignPrivateIpAddresses, ec2.UnassignPrivateIpAddresses:
	default:
		return "", ""
	}
	if id = q.ENI; id == "" && q.Attachment != "" {
		id = eniOf(w.Model, q.Attachment)
	}
	return "asks for " + q.Action.String() + " of", id
}

// eniOf is the ENI of an attachment, whosever that is; "" is none.
func eniOf(m *ec2.Cloud, attachment string) ec2.ENIID {
	for _, e := range m.AllENIs() {
		if e.Attachment == attachment {
			return e.ID
		}
	}
	return ""
}

// Made says whether a CNI of a cluster made an ENI, and has to delete it.
func Made(m *ec2.Cloud, cluster string, e *ec2.ENI) bool {
	return TagOf(e, TagOwner) != "" && e.Kind == ec2.Ordinary && TagOf(e, TagNoManage) != "true" && elsewhere(m, cluster, e) == ""
}

// TagOf is the value of an ENI's tag, "" if it has none.
func TagOf(e *ec2.ENI, key string) string {
	for _, t := range e.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}
