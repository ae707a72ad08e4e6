package daemon

import (
	"cmp"
	"maps"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// upstreamNames are amazon-vpc-cni-k8s's settings, read out of its README and source.
const upstreamNames = "../settings/testdata/upstream.txt"

// effects have a row for each of upstream's settings, which sets it on a daemon, a client or a world and looks for what
// README.md of amazon-vpc-cni-k8s 1.23.0 and docs/ipamd.md say of it, beside the same without the setting.
var effects = map[string]func(*effect){
	"ADDITIONAL_ENI_TAGS":                   tagged,
	"ANNOTATE_POD_IP":                       refused("true", "writing annotations to pods is not there yet"),
	"AWS_CLUSTER_ID":                        elsewhere("blue"),
	"AWS_EC2_ENDPOINT":                      endpoint,
	"AWS_EXTERNAL_SERVICE_CIDRS":            refused("10.9.0.0/16", "rules for external services are not there yet"),
	"AWS_MANAGE_ENIS_NON_SCHEDULABLE":       cordoned,
	"AWS_REGION":                            region,
	"AWS_VPC_CNI_NODE_PORT_SUPPORT":         nodePort,
	"AWS_VPC_ENI_MTU":                       mtu,
	"AWS_VPC_K8S_CNI_BACKING_STORE":         backingStore,
	"AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER":    noted("false", "it has no effect: `ipamd init` sets rp_filter"),
	"AWS_VPC_K8S_CNI_CONNMARK":              refused("0x100", "another bit than 0x80 is not there yet"),
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    played("true", nil, configs+"at 1m expect ec2 subnet-2.enis == 1"),
	"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS":    excluded,
	"AWS_VPC_K8S_CNI_EXTERNALSNAT":          externalSNAT,
	"AWS_VPC_K8S_CNI_LOGLEVEL":              logLevel,
	"AWS_VPC_K8S_CNI_LOG_FILE":              namedLogFile,
	"AWS_VPC_K8S_CNI_RANDOMIZESNAT":         noted("none", "ports of SNAT are always chosen at random (prng)"),
	"AWS_VPC_K8S_CNI_VETHPREFIX":            vethPrefix,
	"AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": noted("/tmp/v4.log", "it has no effect: it belongs to IPv6 clusters"),
	"AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE": noted("/tmp/v6.log", "it has no effect: there is no IPv6 egress yet"),
	"AWS_VPC_K8S_PLUGIN_LOG_FILE":           chained("/var/log/other.log", `"pluginLogFile":"/var/log/other.log"`),
	"AWS_VPC_K8S_PLUGIN_LOG_LEVEL":          chained("ERROR", `"pluginLogLevel":"ERROR"`),
	"CLUSTER_ENDPOINT":                      apiServer(env{"MY_NODE_NAME": "blue"}),
	"CLUSTER_NAME":                          clusterName,
	"DISABLE_INTROSPECTION":                 noted("true", "there is no HTTP introspection yet"),
	"DISABLE_LEAKED_ENI_CLEANUP":            played("true", env{"CLUSTER_NAME": "enilab"}, leaked),
	"DISABLE_METRICS":                       noted("true", "there are no metrics yet"),
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": played("true", nil, "cluster nodes=1 type=m5.large warm=4\n"+unchanged),
	"DISABLE_POD_V6":                        chained("true", `"net.ipv6.conf.all.disable_ipv6":"1"`),
	"DISABLE_TCP_EARLY_DEMUX":               noted("true", "it has no effect without security groups for pods"),
	"Debug":                                 elsewhere("true"),
	"ENABLE_BANDWIDTH_PLUGIN":               chained("true", `"type":"bandwidth"`),
	"ENABLE_IMDS_ONLY_MODE":                 played("true", nil, "cluster nodes=1 type=m5.large warm=4\n"+unasked),
	"ENABLE_IPv4":                           refused("false", "a cluster without IPv4 is not supported yet"),
	"ENABLE_IPv6":                           refused("true", "IPv6 is not supported yet"),
	"ENABLE_MULTI_NIC":                      refused("true", "several network cards are not supported yet"),
	"ENABLE_NFTABLES":                       noted("false", "it has no effect: nftables is always used"),
	"ENABLE_POD_ENI":                        refused("true", "security groups for pods are not there yet"),
	"ENABLE_PREFIX_DELEGATION":              played("true", nil, many),
	"ENABLE_SUBNET_DISCOVERY":               played("false", nil, discovery),
	"ENABLE_V4_EGRESS":                      noted("false", "it has no effect: it belongs to IPv6 clusters"),
	"ENABLE_V6_EGRESS":                      refused("true", "IPv6 egress of IPv4 pods is not there yet"),
	"ENI_CONFIG_ANNOTATION_DEF":             played("example.com/pods", custom, annotated),
	"ENI_CONFIG_LABEL_DEF":                  played("topology.kubernetes.io/zone", custom, configs+"at 1m expect ec2 subnet-3.enis == 1"),
	"HOST_CNI_BIN_PATH":                     binaries,
	"HOST_CNI_CONFDIR_PATH":                 confDir,
	"HTTP_TIMEOUT":                          httpTimeout,
	"INTROSPECTION_BIND_ADDRESS":            noted("127.0.0.1:1", "there is no HTTP introspection yet"),
	"IP_COOLDOWN_PERIOD":                    played("300", nil, cooling),
	"MANAGE_UNTAGGED_ENI":                   played("false", nil, stranger),
	"MAX_ENI":                               played("1", nil, oneENI),
	"METRIC_UPDATE_INTERVAL":                elsewhere("5"),
	"MINIMUM_IP_TARGET":                     played("6", nil, six),
	"MY_NODE_NAME":                          nodeName,
	"MY_POD_NAME":                           podName,
	"NETWORK_POLICY_ENFORCING_MODE":         policyMode,
	"POD_MTU":                               refused("1400", "pods with an MTU of their own are not there yet"),
	"POD_SECURITY_GROUP_ENFORCING_MODE":     chained("standard", `"podSGEnforcingMode":"standard"`),
	"USE_CLOUDWATCH":                        elsewhere("true"),
	"USE_PROMETHEUS":                        elsewhere("true"),
	"VPC_CNI_VERSION":                       unheard("v1.23.0"),
	"WARM_ENI_TARGET":                       played("2", nil, threeENIs),
	"WARM_IP_TARGET":                        played("3", nil, threeFree),
	"WARM_PREFIX_TARGET":                    played("3", env{"ENABLE_PREFIX_DELEGATION": "true"}, threePrefixes),
}

// The clusters in which rows are played.
const (
	small   = "cluster nodes=1 type=m5.large\n"
	configs = "cluster nodes=1 type=m5.large subnet=10.0.1.0/24 subnets=10.0.2.0/24,10.0.3.0/24 " +
		"eniconfigs=default:2,us-west-2a:3\n"
	cooling = small + "start pods web 4 on node-1\n" +
		"at 1s kube scale web 0\n" +
		"at 2m expect node-1 addresses.cooling == 4"
	stranger = small + "at 1s ec2 attach kind=untagged\n" +
		"at 3m expect node-1 reached.eni-not-ours == 1"
	oneENI = small + "at 1s kube create web 12\n" +
		"at 3m expect node-1 enis == 1\n" +
		"at 3m expect kube pods.ready == 9"
	many = small + "at 1s kube create web 60\n" +
		"at 5m expect kube pods.ready == 60"
	six = small + "start pods web 2 on node-1\n" +
		"at 1m expect node-1 addresses.total == 6"
	threeENIs = small + "start pods web 1 on node-1\n" +
		"at 1m expect node-1 enis == 3"
	threeFree = small + "start pods web 1 on node-1\n" +
		"at 1m expect node-1 addresses.free == 3"
	threePrefixes = small + "at 1m expect node-1 addresses.free == 48"
	leaked        = small + "at 1s ec2 leak of=this-cluster\nat 2h expect ec2 enis.available == 1"
	unchanged     = "at 1s kube create web 10\nat 3m expect ec2 calls.AssignPrivateIpAddresses == 0\n" +
		"at 3m expect ec2 calls.CreateNetworkInterface == 0\nat 3m expect kube pods.ready == 4"
	unasked   = "at 1s kube create web 10\nat 2h expect node-1 calls.total == 0\nat 2h expect kube pods.ready == 4"
	discovery = "cluster nodes=1 type=m5.large subnet=10.0.1.0/24 subnets=10.0.2.0/23:cni\n" +
		"at 1s kube create web 4\nat 1m expect ec2 subnet-1.enis == 2"
	annotated = configs + "at 1s node-1 annotate us-west-2a key=example.com/pods\nat 1m kube create web 10\n" +
		"at 3m expect ec2 subnet-3.enis == 1"
)

var custom = env{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}

// TestUpstreamEffects: each of upstream's settings has its documented effect, or is refused or taken back in words.
func TestUpstreamEffects(t *testing.T) {
	list := must.Get(os.ReadFile(upstreamNames))(t)
	names := strings.Fields(string(list))
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		if !slices.Contains(names, name) {
			t.Errorf("%s has a row, and is none of upstream's settings", name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			row := effects[name]
			if row == nil {
				t.Fatal("it has no row: what is its effect, or who refuses it?")
			}
			row(&effect{t, name, names})
		})
	}
}

// TestUpstreamPools: with the warm targets that amazon-vpc-cni-k8s's integration specs of ipamd set, the zeros too, a node without pods has the pool
// that they expect.
func TestUpstreamPools(t *testing.T) {
	const prefixes, empty = "ENABLE_PREFIX_DELEGATION=true ", "cluster nodes=1 type=m5.xlarge max-pods=110\nat 5m expect node-1 "
	for set, want := range map[string]string{
		"WARM_ENI_TARGET=3 MAX_ENI=2":                                           "enis == 2",
		"WARM_ENI_TARGET=3 MAX_ENI=0":                                           "enis == 3",
		"WARM_ENI_TARGET=2 MAX_ENI=0":                                           "enis == 2",
		"WARM_IP_TARGET=2 MINIMUM_IP_TARGET=0":                                  "addresses.total == 2",
		"WARM_IP_TARGET=16 MINIMUM_IP_TARGET=0":                                 "addresses.total == 16",
		"WARM_IP_TARGET=0 MINIMUM_IP_TARGET=2":                                  "addresses.total == 2",
		"WARM_IP_TARGET=0 MINIMUM_IP_TARGET=16":                                 "addresses.total == 16",
		"WARM_IP_TARGET=6 MINIMUM_IP_TARGET=10":                                 "addresses.total == 10",
		prefixes + "WARM_IP_TARGET=2 MINIMUM_IP_TARGET=0":                       "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=16 MINIMUM_IP_TARGET=0":                      "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=0 MINIMUM_IP_TARGET=2":                       "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=0 MINIMUM_IP_TARGET=16":                      "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=6 MINIMUM_IP_TARGET=10":                      "addresses.total == 16",
		prefixes + "WARM_PREFIX_TARGET=2":                                       "addresses.free == 32",
		prefixes + "WARM_IP_TARGET=2 MINIMUM_IP_TARGET=0 WARM_PREFIX_TARGET=1":  "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=16 MINIMUM_IP_TARGET=0 WARM_PREFIX_TARGET=0": "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=0 MINIMUM_IP_TARGET=2 WARM_PREFIX_TARGET=2":  "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=0 MINIMUM_IP_TARGET=16 WARM_PREFIX_TARGET=0": "addresses.total == 16",
		prefixes + "WARM_IP_TARGET=6 MINIMUM_IP_TARGET=10 WARM_PREFIX_TARGET=1": "addresses.total == 16",
	} {
		t.Run(set, func(t *testing.T) {
			e, values := &effect{t: t, name: "pool"}, env{}
			for _, one := range strings.Fields(set) {
				name, value, _ := strings.Cut(one, "=")
				values[name] = value
			}
			if _, c := e.read(values); len(c.Problems) > 0 {
				t.Errorf("it is refused: %q", c.Problems)
			}
			if wrong := e.play(values, nil, empty+want); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// refused: a daemon that has the value says so, takes no pods, and asks nobody anything.
func refused(value, words string) func(*effect) {
	return func(e *effect) {
		e.asks()
		_, c := e.read(env{e.name: value})
		r := rigOf(e.t, 1, c).start()
		r.eventually("the daemon answers", func() bool { return exists(r.socket()) })
		if s := r.status(); s.Ready || !strings.Contains(strings.Join(s.Reasons, "; "), e.name+": ") ||
			!strings.Contains(strings.Join(s.Reasons, "; "), words) {
			e.t.Errorf("STATUS: ready %v, reasons %q; expected %s to be refused with %q", s.Ready, s.Reasons, e.name, words)
		}
		if _, plain := e.read(nil); len(plain.Problems) > 0 {
			e.t.Errorf("without it: %q", plain.Problems)
		}
	}
}

// noted: a daemon that has the value serves, and its log has what becomes of it.
func noted(value, words string) func(*effect) {
	return func(e *effect) {
		_, c := e.read(env{e.name: value})
		if len(c.Problems) > 0 {
			e.t.Errorf("it is refused: %q", c.Problems)
		}
		r := rigOf(e.t, 1, c).start()
		r.eventually("the log has what becomes of it", func() bool {
			return slices.ContainsFunc(strings.Split(r.log.String(), "\n"), func(line string) bool {
				return strings.Contains(line, "level=WARN") && strings.Contains(line, e.name+": ") && strings.Contains(line, words)
			})
		})
		if _, plain := e.read(nil); strings.Contains(strings.Join(plain.Unusual, "; "), e.name) {
			e.t.Errorf("the same is said without it: %q", plain.Unusual)
		}
	}
}

// elsewhere: the setting is another program's, and the manual says whose.
func elsewhere(value string) func(*effect) {
	return func(e *effect) { e.without(value, "cni-metrics-helper") }
}

// unheard: the setting is accepted, and the manual says that nothing comes of it.
func unheard(value string) func(*effect) {
	return func(e *effect) { e.without(value, "no effect") }
}

// chained: the conflist that the daemon writes has the text.
func chained(value, text string) func(*effect) {
	return func(e *effect) {
		if list := e.serves(env{e.name: value}).conflist(); !strings.Contains(list, text) {
			e.t.Errorf("the conflist lacks %s:\n%s", text, list)
		}
		if list := e.serves(nil).conflist(); strings.Contains(list, text) {
			e.t.Errorf("the conflist has %s without the setting:\n%s", text, list)
		}
	}
}

// played: what the scenario expects holds with the value, and not without it. Both worlds have the settings of base.
func played(value string, base env, scenario string) func(*effect) {
	return func(e *effect) {
		with := maps.Clone(base)
		if with == nil {
			with = env{}
		}
		with[e.name] = value
		if wrong := e.play(with, nil, scenario); wrong != "" {
			e.t.Errorf("with %s=%s: %s", e.name, value, wrong)
		}
		if e.play(base, nil, scenario) == "" {
			e.t.Errorf("the scenario holds without %s too", e.name)
		}
	}
}

// cordoned: no ENI and no address is made on a node that is cordoned, unless the setting says so.
func cordoned(e *effect) {
	cordon := func(s *ipam.Settings) { s.Cordoned = true }
	const scenario = "cluster nodes=1 type=m5.large warm=4\nat 1s kube create web 10\nat 3m expect kube pods.ready == 10"
	if wrong := e.play(env{e.name: "true"}, cordon, scenario); wrong != "" {
		e.t.Error(wrong)
	}
	if e.play(nil, cordon, scenario) == "" {
		e.t.Error("a cordoned node makes addresses without it too")
	}
}

// tagged: a CreateNetworkInterface has the tag.
func tagged(e *effect) {
	has := func(set env) bool {
		form, _ := e.created(set)
		for key, value := range form {
			if strings.HasSuffix(key, ".Key") && value[0] == "team" {
				return form.Get(strings.TrimSuffix(key, "Key")+"Value") == "blue"
			}
		}
		return false
	}
	if !has(env{e.name: `{"team":"blue"}`}) {
		e.t.Error("a new ENI has not the tag team=blue")
	}
	if has(nil) {
		e.t.Error("a new ENI has the tag without the setting")
	}
}

// endpoint: EC2 is asked there.
func endpoint(e *effect) {
	other := newAsked(e.t, http.StatusBadRequest)
	if e.created(env{e.name: other.url}); len(other.all()) != 1 {
		e.t.Errorf("the endpoint was asked %d times, expected once", len(other.all()))
	}
	if e.created(nil); len(other.all()) != 1 {
		e.t.Error("the endpoint is asked without the setting")
	}
}

// region: requests are signed for it.
func region(e *effect) {
	if _, signed := e.created(env{e.name: "eu-north-1"}); !strings.Contains(signed, "/eu-north-1/ec2/") {
		e.t.Errorf("a request is signed for %q", signed)
	}
	if _, signed := e.created(nil); strings.Contains(signed, "/eu-north-1/") {
		e.t.Errorf("without the setting a request is signed for %q", signed)
	}
}

// httpTimeout: a request to EC2 that has no answer for 15 s fails with the default, which is 10 s, and not with 20 s.
func httpTimeout(e *effect) {
	for set, want := range map[string]bool{"": false, "20": true} {
		a := newAsked(e.t, http.StatusBadRequest)
		e.clear()
		e.environ(env{e.name: set, "AWS_ENDPOINT_URL": a.url})
		synctest.Test(e.t, func(t *testing.T) {
			_, c := e.settings()
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) {
				<-time.After(15 * time.Second) // of the bubble's clock
			}})
			got := c.Cloud.Call(ctx, newENI())
			if answered := got.Code == refusalCode; answered != want {
				t.Errorf("%s=%q: the call ends with %s; expected an answer: %v", e.name, set, got.Code, want)
			}
			c.Cloud.(interface{ Close() }).Close()
			synctest.Wait()
		})
	}
}

// nodePort: without it nothing is marked, and `ipamd init` leaves rp_filter alone.
func nodePort(e *effect) {
	for set, want := range map[string]bool{"": true, "false": false} {
		r := e.serves(env{e.name: set})
		if nat := r.observed().NAT; nat.NodePort != want {
			e.t.Errorf("%s=%q: %+v", e.name, set, nat)
		}
		s, _ := e.read(env{e.name: set})
		plan := primaryPlan(s, primaryMAC0)
		loose := slices.ContainsFunc(plan.Ops, func(o dataplane.Op) bool { return o.Name == "rp_filter" && o.Value == "2" })
		if loose != want {
			e.t.Errorf("%s=%q: init does %v", e.name, set, plan)
		}
	}
}

// mtu: of the ENIs, of the pods, and in the conflist.
func mtu(e *effect) {
	const pods = small + "at 1s kube create web 2\nat 1m expect kube pods.ready == 2"
	for set, want := range map[string]int{"": 9001, "1400": 1400} {
		r := e.serves(env{e.name: set})
		o := r.observed()
		i := slices.IndexFunc(o.Links, func(l dataplane.Link) bool { return l.MAC == primaryMAC0 })
		if i < 0 || o.Links[i].MTU != want {
			e.t.Errorf("%s=%q: links %+v, expected %d bytes", e.name, set, o.Links, want)
		}
		if text := `"mtu":"` + strconv.Itoa(want) + `"`; !strings.Contains(r.conflist(), text) {
			e.t.Errorf("%s=%q: the conflist lacks %s", e.name, set, text)
		}
		veths := e.veths(env{e.name: set}, pods)
		if len(veths) != 2 || slices.ContainsFunc(veths, func(o dataplane.Op) bool { return o.MTU != want }) {
			e.t.Errorf("%s=%q: veths %v, expected %d bytes", e.name, set, veths, want)
		}
	}
}

// vethPrefix: of the host veths' names, and in the conflist.
func vethPrefix(e *effect) {
	const pods = small + "at 1s kube create web 2\nat 1m expect kube pods.ready == 2"
	for set, want := range map[string]string{"": "eni", "abc": "abc"} {
		veths := e.veths(env{e.name: set}, pods)
		if len(veths) != 2 || slices.ContainsFunc(veths, func(o dataplane.Op) bool { return !strings.HasPrefix(o.Link, want) }) {
			e.t.Errorf("%s=%q: veths %v", e.name, set, veths)
		}
		if text := `"vethPrefix":"` + want + `"`; !strings.Contains(e.serves(env{e.name: set}).conflist(), text) {
			e.t.Errorf("%s=%q: the conflist lacks %s", e.name, set, text)
		}
	}
}

// backingStore: the record of allocations is there.
func backingStore(e *effect) {
	path := filepath.Join(e.t.TempDir(), "allocations.json")
	r := e.serves(env{e.name: path})
	r.eventually("the record is written", func() bool { return exists(path) })
	if usual := filepath.Join(r.c.RunDir, "ipam.json"); exists(usual) {
		e.t.Errorf("%s is written too", usual)
	}
}

// excluded: pods' own addresses are seen there.
func excluded(e *effect) {
	for set, want := range map[string]string{"": "10.0.0.0/16", "192.168.7.0/24": "10.0.0.0/16 192.168.7.0/24"} {
		if nat := e.serves(env{e.name: set}).observed().NAT; nat.CIDRs != want {
			e.t.Errorf("%s=%q: %q is not SNATed to, expected %q", e.name, set, nat.CIDRs, want)
		}
	}
}

// externalSNAT: nothing is SNATed here.
func externalSNAT(e *effect) {
	for set, want := range map[string]bool{"": true, "true": false} {
		if nat := e.serves(env{e.name: set}).observed().NAT; nat.SNAT != want {
			e.t.Errorf("%s=%q: %+v", e.name, set, nat)
		}
	}
}

// logLevel: lines of a lower level are not written.
func logLevel(e *effect) {
	for set, want := range map[string][]bool{"": {true, true}, "ERROR": {false, true}} {
		path := filepath.Join(e.t.TempDir(), "ipamd.log")
		text := e.logged(env{e.name: set, "AWS_VPC_K8S_CNI_LOG_FILE": path}, path)
		if got := []bool{strings.Contains(text, "msg=low"), strings.Contains(text, "msg=high")}; !slices.Equal(got, want) {
			e.t.Errorf("%s=%q: the log is %q", e.name, set, text)
		}
	}
}

// namedLogFile: the log is there.
func namedLogFile(e *effect) {
	path := filepath.Join(e.t.TempDir(), "another.log")
	if text := e.logged(env{e.name: path}, path); !strings.Contains(text, "msg=high") {
		e.t.Errorf("%s has %q", path, text)
	}
	if text := e.logged(env{e.name: "stderr"}, path+".none"); text != "" {
		e.t.Errorf("with stderr a file has %q", text)
	}
}

// clusterName: ENIs are made for that cluster.
func clusterName(e *effect) {
	for set, want := range map[string]string{"": "", "blue": "blue"} {
		_, c := e.read(env{e.name: set, "WARM_ENI_TARGET": "2"})
		r := rigOf(e.t, 4, c)
		calls := &callsOf{fixedCloud: r.cloud}
		r.c.Cloud = calls
		r.start()
		var made *ipam.Call
		r.eventually("an ENI is asked for", func() bool { made = calls.first(ipam.CreateENI); return made != nil })
		if made.Cluster != want {
			e.t.Errorf("%s=%q: an ENI is made for cluster %q", e.name, set, made.Cluster)
		}
		r.end()
	}
}

// apiServer: it is asked there.
func apiServer(base env) func(*effect) {
	return func(e *effect) {
		a := newAsked(e.t, http.StatusNotFound)
		with := maps.Clone(base)
		with[e.name] = a.url
		r := e.serves(with)
		r.eventually("the API server is asked", func() bool { return len(a.all()) > 0 })
		if _, c := e.read(base); c.Pods != nil {
			e.t.Error("there is an API server to ask without it")
		}
	}
}

// nodeName: the API server is asked about that node.
func nodeName(e *effect) {
	a := newAsked(e.t, http.StatusNotFound)
	r := e.serves(env{e.name: "blue", "CLUSTER_ENDPOINT": a.url})
	r.eventually("the API server is asked about the node", func() bool {
		return slices.ContainsFunc(a.all(), func(q asking) bool { return strings.Contains(q.url, "blue") })
	})
	if _, c := e.read(env{"CLUSTER_ENDPOINT": a.url}); c.Pods != nil {
		e.t.Error("the API server is asked without it")
	}
}

// podName: a runtime's list that lacks the daemon's own pod is another runtime's.
func podName(e *effect) {
	e.asks()
	for set, want := range map[string]bool{"": false, "aws-node-1": true} {
		_, c := e.read(env{e.name: set})
		r := rigOf(e.t, 4, c)
		list := &runtimeOf{}
		r.c.Runtime = list
		r.start().serves()
		said := func() bool {
			return strings.Contains(strings.Join(r.status().Reasons, "; "), "it is another runtime's")
		}
		r.eventually("the runtime was asked", func() bool { return list.asked.Load() > 0 })
		if want {
			r.eventually("STATUS says that it is another runtime's list", said)
		} else if said() {
			e.t.Errorf("STATUS says %q", r.status().Reasons)
		}
		r.end()
	}
}

// policyMode: in mode strict no pod starts without an agent.
func policyMode(e *effect) {
	for set, want := range map[string]bool{"": false, "standard": false, "strict": true} {
		r := e.serves(env{e.name: set})
		if said := strings.Contains(strings.Join(r.status().Reasons, "; "), e.name+" is strict"); said != want {
			e.t.Errorf("%s=%q: STATUS says %q", e.name, set, r.status().Reasons)
		}
		if mode, _, _, err := askMode(e.t, "unix://"+r.socket()); err != nil || mode != cmp.Or(set, "none") {
			e.t.Errorf("%s=%q: an agent that asks is told %q, %v", e.name, set, mode, err)
		}
	}
}

// binaries: the plugins are installed there.
func binaries(e *effect) {
	from, to := e.t.TempDir(), e.t.TempDir()
	must.Do(e.t, os.WriteFile(filepath.Join(from, "aws-cni"), nil, 0o755))
	for set, want := range map[string]bool{"none": false, to: true} {
		s, _ := e.read(env{e.name: set, "ENILAB_PLUGIN_DIR": from})
		if err := installPlugins(s, slogTo(&buffer{})); err != nil {
			e.t.Error(err)
		}
		if installed := exists(filepath.Join(to, "aws-cni")); installed != want {
			e.t.Errorf("%s=%q: installed in %s: %v", e.name, set, to, installed)
		}
		os.Remove(filepath.Join(to, "aws-cni"))
	}
}

// confDir: the conflist is written there.
func confDir(e *effect) {
	for set, want := range map[string]bool{"none": false, e.t.TempDir(): true} {
		r := e.serves(env{e.name: set})
		if written := exists(filepath.Join(set, "10-aws.conflist")); written != want {
			e.t.Errorf("%s=%q: written there: %v\n%s", e.name, set, written, r.log)
		}
	}
}
