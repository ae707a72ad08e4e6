package settings

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/enilab/enilab/impl/ipam"
)

// contradictions are what variables say against each other.
func (s *Settings) contradictions() (out []Problem) {
	if v := s.get("POD_MTU"); v.Value != "" && v.Value != strconv.Itoa(s.IPAM.MTU) {
		if number(v.Value, 576, 9001) == nil {
			out = append(out, Problem{Variable: v.Name, Text: fmt.Sprintf("%s: AWS_VPC_ENI_MTU is %d, and pods with an MTU of their own are not there yet", v.Value, s.IPAM.MTU), Stops: true})
		}
	}
	if v := s.get("WARM_ENI_TARGET"); v.Origin == Environment && (s.IPAM.WarmIPTarget > 0 || s.IPAM.MinimumIPTarget > 0) {
		out = append(out, Problem{Variable: v.Name, Text: v.Value + ": it has no effect beside WARM_IP_TARGET or MINIMUM_IP_TARGET"})
	}
	if v := s.get("WARM_ENI_TARGET"); v.Origin == Environment && v.Value != coreDefaults[v.Name] && s.IPAM.PrefixDelegation &&
		s.IPAM.WarmIPTarget+s.IPAM.MinimumIPTarget == 0 {
		out = append(out, Problem{Variable: v.Name, Text: v.Value + ": it has no effect beside ENABLE_PREFIX_DELEGATION=true: WARM_PREFIX_TARGET has"})
	}
	if v := s.get("WARM_PREFIX_TARGET"); s.IPAM.WarmPrefixTarget != ipam.Defaults().WarmPrefixTarget {
		switch {
		case !s.IPAM.PrefixDelegation:
			out = append(out, Problem{Variable: v.Name, Text: v.Value + ": it has no effect without ENABLE_PREFIX_DELEGATION=true"})
		case s.IPAM.WarmIPTarget > 0 || s.IPAM.MinimumIPTarget > 0:
			out = append(out, Problem{Variable: v.Name, Text: v.Value + ": it has no effect beside WARM_IP_TARGET or MINIMUM_IP_TARGET"})
		}
	}
	if v := s.get("POD_SECURITY_GROUP_ENFORCING_MODE"); v.Value == "standard" {
		out = append(out, Problem{Variable: v.Name, Text: v.Value + ": it has no effect without security groups for pods, which are not there yet"})
	}
	out = append(out, s.custom()...)
	if s.IPAM.Excluded != 0 && !s.IPAM.IMDSOnly {
		out = append(out, Problem{Variable: "ENILAB_IMDS_ONLY_EXCLUDED_DEVICES", Text: "it has no effect without ENABLE_IMDS_ONLY_MODE=true: EC2 says which ENIs are tagged no_manage"})
	}
	if s.IPAM.ExternalSNAT && len(s.ExcludeSNAT) > 0 {
		out = append(out, Problem{Variable: "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", Text: "it has no effect beside AWS_VPC_K8S_CNI_EXTERNALSNAT=true: nothing is SNATed"})
	}
	if s.Endpoint != "" && s.Node == "" {
		out = append(out, Problem{Variable: "MY_NODE_NAME", Text: "it is unset although CLUSTER_ENDPOINT is set: the API server cannot be asked about a node without a name"})
	}
	return out
}

// custom are those of custom networking: it is of ENIs that the daemon makes.
func (s *Settings) custom() (out []Problem) {
	const custom = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
	switch {
	case !s.IPAM.CustomNetwork:
		for _, name := range []string{"ENI_CONFIG_ANNOTATION_DEF", "ENI_CONFIG_LABEL_DEF"} {
			if v := s.get(name); v.Value != coreDefaults[name] {
				out = append(out, Problem{Variable: name, Text: v.Value + ": it has no effect without " + custom + "=true"})
			}
		}
	case s.IPAM.IMDSOnly:
		out = append(out, Problem{Variable: custom, Text: "true: with ENABLE_IMDS_ONLY_MODE=true no network interface is made, and none can be made" +
			" by an ENIConfig; set one of them to false", Stops: true})
	case s.IPAM.NoProvisioning:
		out = append(out, Problem{Variable: custom, Text: "true: with DISABLE_NETWORK_RESOURCE_PROVISIONING=true no network interface is made by an" +
			" ENIConfig; pods get addresses of those that are attached, the primary one left out"})
	}
	return out
}

// families are prefixes of amazon-vpc-cni-k8s's variables and of ours that no other program in the container has.
var families = []string{"AWS_VPC_", "WARM_", "ENILAB_", "ENI_CONFIG_", "MINIMUM_IP"}

// nearMiss is how many letters may differ in a name that is taken for a misspelled one.
const nearMiss = 2

// Unknown are the names in an environment (os.Environ) that look like a setting and are none: they are not read, and
// an operator believes that they do. None of these problems Stops: a newer amazon-vpc-cni-k8s may have one more.
func Unknown(environ []string) (out []Problem) {
	known := map[string]bool{}
	var names []string
	for _, v := range variables() {
		known[v.name] = true
		names = append(names, v.name)
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if known[name] || len(name) > maxName {
			continue
		}
		if meant := nearest(name, names); meant != "" {
			out = append(out, Problem{Variable: name, Text: "it is no setting; did you mean " + meant + "?", Unread: true})
		} else if hasAny(name, families) {
			out = append(out, Problem{Variable: name, Text: "it is no setting, and nobody reads it", Unread: true})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Variable < out[j].Variable })
	return out
}

// maxName bounds the names that are compared.
const maxName = 80

func hasAny(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// nearest is the setting whose name differs the least, if that is little.
func nearest(name string, names []string) string {
	best, found := nearMiss+1, ""
	for _, n := range names {
		if len(n) < 3*nearMiss || len(n)-len(name) > nearMiss || len(name)-len(n) > nearMiss {
			continue
		}
		if d := distance(strings.ToUpper(name), strings.ToUpper(n)); d < best {
			best, found = d, n
		}
	}
	return found
}

// distance is how many letters have to be put in, taken out or changed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		corner := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := corner
			if a[i-1] != b[j-1] {
				change++
			}
			corner = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
