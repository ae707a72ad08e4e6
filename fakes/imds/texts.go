package imds

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// exampleImage is the AMI of the user guide's examples: what Launch starts has none.
const exampleImage = "ami-0abcdef1234567890"

func (v *View) image() string {
	return cmp.Or(v.Extras.Image, v.Instance.Image, exampleImage)
}

// reservation is that of the launch; what was not launched by RunInstances has one of its own.
func (v *View) reservation() string {
	return cmp.Or(v.Instance.Reservation, "r-"+strings.TrimPrefix(string(v.Instance.ID), "i-"))
}

// hostname is the private DNS name of an address ("Amazon EC2 instance hostname types").
func (v *View) hostname(a netip.Addr) string {
	domain := v.Region + ".compute.internal"
	if v.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(a.String(), ".", "-") + "." + domain
}

// partitionOf is the partition of a region ("Amazon Resource Names").
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func domainOf(region string) string {
	if partitionOf(region) == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// system is what runs the instance; bare metal says what the others of its generation do.
func system(kind string) string {
	if t, _ := ec2.TypeOf(kind); t.Hypervisor == "xen" {
		return "xen"
	}
	return "nitro"
}

// document is the instance identity document ("Instance identity documents").
func (v *View) document() string {
	i := &v.Instance
	architecture := "x86_64"
	if t, ok := ec2.TypeOf(i.Type); ok {
		architecture = t.Arch
	}
	return marshal(struct {
		AccountID    string  `json:"accountId"`
		Architecture string  `json:"architecture"`
		Zone         string  `json:"availabilityZone"`
		Billing      *string `json:"billingProducts"`
		DevPay       *string `json:"devpayProductCodes"`
		Marketplace  *string `json:"marketplaceProductCodes"`
		Image        string  `json:"imageId"`
		InstanceID   string  `json:"instanceId"`
		InstanceType string  `json:"instanceType"`
		Kernel       *string `json:"kernelId"`
		Pending      string  `json:"pendingTime"`
		PrivateIP    string  `json:"privateIp"`
		RAMDisk      *string `json:"ramdiskId"`
		Region       string  `json:"region"`
		Version      string  `json:"version"`
	}{AccountID: v.owner(), Architecture: architecture, Zone: i.Zone, Image: v.image(), InstanceID: string(i.ID), InstanceType: i.Type,
		Pending: stamp(v.Epoch.Add(i.Launched)), PrivateIP: i.PrimaryAddress.String(), Region: v.Region, Version: "2017-09-30"})
}

// secret is what credentials are written as.
type secret struct {
	Code, LastUpdated, Type            string
	AccessKeyID                        string `json:"AccessKeyId"`
	SecretAccessKey, Token, Expiration string
}

// credentials are the role's ("Retrieve security credentials from instance metadata").
func (p *place) credentials() string {
	key := AccessKey(p.Instance.ID)
	return marshal(secret{"Success", stamp(p.Updated), "AWS-HMAC", key, SecretKey(key), SessionToken(p.Instance.ID), stamp(p.Expires)})
}

// identityCredentials are those by which AWS itself knows the instance: they allow nothing, and InstanceOf does not know them.
func (p *place) identityCredentials() string {
	id := string(p.Instance.ID)
	key := keyPrefix + "IDENTITY" + strings.ToUpper(id[max(0, len(id)-8):])
	return marshal(secret{"Success", stamp(p.Updated), "AWS-HMAC", key, SecretKey(key), SessionToken(p.Instance.ID), stamp(p.Expires)})
}

func (p *place) identityInfo() string {
	return marshal(struct {
		Code, LastUpdated string
		AccountID         string `json:"AccountId"`
	}{"Success", stamp(p.Updated), p.owner()})
}

// profile is what says which instance profile the role comes with; here it is named as the role is.
func (p *place) profile() string {
	if p.Role == "" {
		return ""
	}
	return marshal(struct {
		Code, LastUpdated  string
		InstanceProfileArn string
		InstanceProfileID  string `json:"InstanceProfileId"`
	}{"Success", stamp(p.Updated), "arn:" + partitionOf(p.Region) + ":iam::" + p.owner() + ":instance-profile/" + p.Role, profileID(p.Role)})
}

// profileID is an identifier of an instance profile ("IAM identifiers": AIPA and 17 more), made of its name.
func profileID(role string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(role) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	b := []byte("AIPA")
	for range 17 {
		b = append(b, digits[h%32])
		h = h/32 ^ h<<59
	}
	return string(b)
}

func (p *place) lifeCycle() string {
	if p.Spot {
		return "spot"
	}
	return "on-demand"
}

// interruption is the notice as "Spot Instance interruption notices" shows it.
func (p *place) interruption() string {
	if p.Interruption == nil {
		return ""
	}
	b, _ := json.Marshal(struct { // texts only: it cannot fail
		Action string `json:"action"`
		Time   string `json:"time"`
	}{p.Interruption.Action, stamp(p.Interruption.At)})
	return string(b)
}

// termination is there only when the notice is one of termination.
func (p *place) termination() string {
	if p.Interruption == nil || p.Interruption.Action != "terminate" {
		return ""
	}
	return stamp(p.Interruption.At)
}

func (p *place) rebalance() string {
	if p.Rebalance.IsZero() {
		return ""
	}
	return `{"noticeTime":"` + stamp(p.Rebalance) + `"}`
}

// eventList is a list of scheduled events as "View scheduled events for your instances" shows it.
func eventList(events []Event) string {
	type event struct {
		NotBefore, Code, Description string
		ID                           string `json:"EventId"`
		NotAfter, State              string
	}
	list := make([]event, len(events))
	for i, e := range events {
		list[i] = event{eventTime(e.NotBefore), e.Code, e.Description, e.ID, eventTime(e.NotAfter), e.State}
	}
	return marshal(list)
}

func eventTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 Jan 2006 15:04:05 GMT")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func marshal(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "" // texts only: it cannot fail
	}
	return string(b)
}
