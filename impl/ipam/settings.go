package ipam

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Settings of a node, with amazon-vpc-cni-k8s's names and meaning. The zero value is not useful: see Defaults.
type Settings struct {
	WarmENITarget    int           // WARM_ENI_TARGET: whole free ENIs' worth of addresses; ignored when one of the next two is set
	WarmIPTarget     int           // WARM_IP_TARGET: free addresses; 0 is unset
	MinimumIPTarget  int           // MINIMUM_IP_TARGET: floor of all addresses; 0 is unset
	MaxENI           int           // MAX_ENI: 0 is the instance's limit
	PrefixDelegation bool          // ENABLE_PREFIX_DELEGATION: ENIs get /28 prefixes, where the instance's type can have them
	WarmPrefixTarget int           // WARM_PREFIX_TARGET: free prefixes' worth of addresses, with PrefixDelegation; yields as WarmENITarget does
	CoolDown         time.Duration // IP_COOLDOWN_PERIOD
	ExternalSNAT     bool          // AWS_VPC_K8S_CNI_EXTERNALSNAT
	NodePort         bool          // AWS_VPC_CNI_NODE_PORT_SUPPORT
	MTU              int           // AWS_VPC_ENI_MTU
	VethPrefix       string        // AWS_VPC_K8S_CNI_VETHPREFIX
	NoSweep          bool          // DISABLE_LEAKED_ENI_CLEANUP
	NoProvisioning   bool          // DISABLE_NETWORK_RESOURCE_PROVISIONING: no ENI or address is made or given back
	IMDSOnly         bool          // ENABLE_IMDS_ONLY_MODE: EC2 is neither asked nor called; what metadata has listed for a while is there
	Excluded         Devices       // ENILAB_IMDS_ONLY_EXCLUDED_DEVICES: with IMDSOnly, ENIs at these device indexes are not ours
	ManageWhenCordon bool          // AWS_MANAGE_ENIS_NON_SCHEDULABLE
	Discovery        bool          // ENABLE_SUBNET_DISCOVERY: ENIs are made in any subnet of the zone that is tagged for it, not in the node's own alone
	CustomNetwork    bool          // AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: ENIs for pods are made by the node's ENIConfig, and the primary one is not for pods
	ConfigAnnotation string        // ENI_CONFIG_ANNOTATION_DEF: key of the node's annotation that names its ENIConfig
	ConfigLabel      string        // ENI_CONFIG_LABEL_DEF: key of its label that does, where it has no such annotation
	LeaveUntagged    bool          // not MANAGE_UNTAGGED_ENI: an ENI that no VPC CNI of this instance made is not ours

	Cordoned bool // node fact: unschedulable
	MaxPods  int  // node fact: capacity; 0 is unknown
	Runtime  bool // node fact: a runtime socket is configured
	API      bool // node fact: the API server's list of pods can be asked
}

// Defaults are upstream's (aws-vpc-cni README; the EKS manifest where it differs).
func Defaults() Settings {
	return Settings{WarmENITarget: 1, WarmPrefixTarget: 1, CoolDown: 30 * time.Second, NodePort: true, MTU: 9001,
		VethPrefix: "eni", Discovery: true, ConfigAnnotation: configKey, ConfigLabel: configKey, Runtime: true, API: true}
}

// Provisions says whether ENIs and addresses may be made and given back.
func (s *Settings) Provisions() bool {
	return !s.NoProvisioning && !s.IMDSOnly && (!s.Cordoned || s.ManageWhenCordon)
}

// setters parse one variable each.
var setters = map[string]func(*Settings, string) error{
	"WARM_ENI_TARGET":                       func(s *Settings, v string) error { return count(v, &s.WarmENITarget) },
	"WARM_IP_TARGET":                        func(s *Settings, v string) error { return count(v, &s.WarmIPTarget) },
	"MINIMUM_IP_TARGET":                     func(s *Settings, v string) error { return count(v, &s.MinimumIPTarget) },
	"MAX_ENI":                               func(s *Settings, v string) error { return count(v, &s.MaxENI) },
	"ENABLE_PREFIX_DELEGATION":              func(s *Settings, v string) error { return truth(v, &s.PrefixDelegation) },
	"WARM_PREFIX_TARGET":                    func(s *Settings, v string) error { return count(v, &s.WarmPrefixTarget) },
	"IP_COOLDOWN_PERIOD":                    func(s *Settings, v string) error { return seconds(v, &s.CoolDown) },
	"AWS_VPC_K8S_CNI_EXTERNALSNAT":          func(s *Settings, v string) error { return truth(v, &s.ExternalSNAT) },
	"AWS_VPC_CNI_NODE_PORT_SUPPORT":         func(s *Settings, v string) error { return truth(v, &s.NodePort) },
	"AWS_VPC_ENI_MTU":                       func(s *Settings, v string) error { return within(v, 576, 9001, &s.MTU) },
	"AWS_VPC_K8S_CNI_VETHPREFIX":            func(s *Settings, v string) error { return prefix(v, &s.VethPrefix) },
	"DISABLE_LEAKED_ENI_CLEANUP":            func(s *Settings, v string) error { return truth(v, &s.NoSweep) },
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": func(s *Settings, v string) error { return truth(v, &s.NoProvisioning) },
	"ENABLE_SUBNET_DISCOVERY":               func(s *Settings, v string) error { return truth(v, &s.Discovery) },
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    func(s *Settings, v string) error { return truth(v, &s.CustomNetwork) },
	"ENI_CONFIG_ANNOTATION_DEF":             func(s *Settings, v string) error { return key(v, &s.ConfigAnnotation) },
	"ENI_CONFIG_LABEL_DEF":                  func(s *Settings, v string) error { return key(v, &s.ConfigLabel) },
	"ENABLE_IMDS_ONLY_MODE":                 func(s *Settings, v string) error { return truth(v, &s.IMDSOnly) },
	"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES":     func(s *Settings, v string) error { return devices(v, &s.Excluded) },
	"AWS_MANAGE_ENIS_NON_SCHEDULABLE":       func(s *Settings, v string) error { return truth(v, &s.ManageWhenCordon) },
	"MANAGE_UNTAGGED_ENI": func(s *Settings, v string) error {
		manage := false
		err := truth(v, &manage)
		if err == nil {
			s.LeaveUntagged = !manage
		}
		return err
	},
}

// Variables are the names that Put takes, sorted.
func Variables() []string {
	out := make([]string, 0, len(setters))
	for k := range setters {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// Put sets one variable by its upstream name. The settings are unchanged on error.
func (s *Settings) Put(variable, value string) error {
	set, ok := setters[variable]
	if !ok {
		return fmt.Errorf("setting %s: unknown variable", variable)
	}
	if err := set(s, value); err != nil {
		return fmt.Errorf("setting %s=%q: %w", variable, value, err)
	}
	return nil
}

func count(v string, to *int) error { return within(v, 0, 10_000, to) }

func within(v string, low, high int, to *int) error {
	i, err := strconv.Atoi(v)
	if err != nil || i < low || i > high {
		return fmt.Errorf("expected a whole number from %d to %d", low, high)
	}
	*to = i
	return nil
}

func seconds(v string, to *time.Duration) error {
	i := 0
	if err := within(v, 0, 86_400, &i); err != nil {
		return err
	}
	*to = time.Duration(i) * time.Second
	return nil
}

func truth(v string, to *bool) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("expected true or false")
	}
	*to = b
	return nil
}

func prefix(v string, to *string) error {
	if len(v) == 0 || len(v) > 4 || v == "eth" || v == "vlan" || v == "lo" {
		return fmt.Errorf("expected one to four letters other than eth, vlan and lo")
	}
	*to = v
	return nil
}

// mostKey bounds a key of a label or annotation: Kubernetes allows a prefix of 253 characters, a slash and 63 more.
const mostKey = 253 + 1 + 63

// key reads the key of a label or annotation.
func key(v string, to *string) error {
	if v == "" || len(v) > mostKey || strings.Trim(v, keyLetters) != "" || strings.Count(v, "/") > 1 {
		return fmt.Errorf("expected the key of a label or annotation, such as topology.kubernetes.io/zone")
	}
	*to = v
	return nil
}

const keyLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"

// mostDevice is the highest device index that a setting names; no instance type has as many ENIs on a network card.
const mostDevice = 63

// Devices is a set of device indexes from 1 to mostDevice.
type Devices uint64

// Has says whether a device index is in the set.
func (d Devices) Has(device int) bool { return device > 0 && device <= mostDevice && d>>device&1 == 1 }

// String is the indexes in ascending order with commas between, as the setting has them.
func (d Devices) String() string {
	var out []string
	for i := 1; i <= mostDevice; i++ {
		if d.Has(i) {
			out = append(out, strconv.Itoa(i))
		}
	}
	return strings.Join(out, ",")
}

func devices(v string, to *Devices) error {
	var d Devices
	if v == "" { // none
		*to = d
		return nil
	}
	for _, text := range strings.Split(v, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || i < 1 || i > mostDevice {
			return fmt.Errorf("expected device indexes from 1 to %d with commas between, such as 2,3", mostDevice)
		}
		d |= 1 << i
	}
	*to = d
	return nil
}
