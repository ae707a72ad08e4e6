package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/fakes/world/server"
	"github.com/enilab/enilab/internal/must"
)

// programWorld is worlds/small.yaml for programs that have no time, with signatures verified and IPv6.
func programWorld(t testing.TB) string {
	t.Helper()
	data := must.Get(os.ReadFile("../../../worlds/small.yaml"))(t)
	text := strings.Replace(string(data), "cidr: 10.0.16.0/20,", "cidr: 10.0.16.0/20, ipv6: 2001:db8::/64,", 1)
	text = strings.Replace(text, "cidrs: [10.0.0.0/16]", "cidrs: [10.0.0.0/16]\n            ipv6: [2001:db8::/56]", 1)
	return "verify-signatures: true\nlatency: none\nlag: none\n" + text
}

// programs are the different files of those names that run, and why there is none.
func programs(check []string, names ...string) (out []string, why string) {
	why = "none is installed"
	seen := map[string]bool{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && seen[real] {
			continue
		} else {
			seen[real] = true
		}
		if said, err := exec.Command(path, check...).CombinedOutput(); err != nil {
			why = path + " does not run: " + lastLine(said)
			continue
		}
		out = append(out, path)
	}
	return out, why
}

func lastLine(b []byte) string {
	s := strings.TrimSpace(string(b))
	return s[strings.LastIndex(s, "\n")+1:]
}

// cli is the AWS CLI.
type cli struct {
	t    *testing.T
	path string
	e    *server.Endpoints
	env  []string
}

// bare is an environment in which nothing says how to reach the real AWS.
func bare(more ...string) (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") {
			env = append(env, v)
		}
	}
	return append(append(env, "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1"), more...)
}

// run runs a call and returns its output, and what it wrote about its failure.
func (c *cli) run(args string, more ...string) (out, errs string) {
	c.t.Helper()
	words := append(strings.Fields("--output json --endpoint-url "+c.e.EC2+" ec2 "+args), more...)
	cmd := exec.CommandContext(c.t.Context(), c.path, words...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &o, &e, c.env
	if err := cmd.Run(); err != nil && e.Len() == 0 {
		c.t.Fatalf("aws %s: %v", args, err)
	}
	return o.String(), e.String()
}

// ask runs a call that must succeed, and returns the text at a path of its answer: what --query would say of it.
func (c *cli) ask(query, args string, more ...string) string {
	c.t.Helper()
	out, errs := c.run(args, append(more, "--query", query)...)
	if errs != "" {
		c.t.Fatalf("aws ec2 %s: %s", args, errs)
	}
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil && out != "" {
		c.t.Fatalf("aws ec2 %s: found %q: %v", args, out, err)
	}
	if s, ok := v.(string); ok {
		return s
	}
	return strings.Join(strings.Fields(out), "")
}

// is asks, and compares.
func (c *cli) is(want, query, args string, more ...string) {
	c.t.Helper()
	if got := c.ask(query, args, more...); got != want {
		c.t.Errorf("aws ec2 %s: %s is %s, expected %s", args, query, got, want)
	}
}

// fails runs a call that must be refused with a code.
func (c *cli) fails(code, args string) {
	c.t.Helper()
	if _, errs := c.run(args); !strings.Contains(errs, "("+code+")") {
		c.t.Errorf("aws ec2 %s: expected %s, found %q", args, code, errs)
	}
}

// TestCLI: the AWS CLI, as it is installed, makes an interface's life and an instance's.
func TestCLI(t *testing.T) {
	if testing.Short() {
		t.Skip("each call of the CLI takes a second of computing")
	}
	paths, why := programs([]string{"--version"}, "/usr/bin/aws", "aws")
	if len(paths) == 0 {
		t.Skip("needs the AWS CLI: " + why + " (apt-get install awscli)")
	}
	_, e := start(t, programWorld(t))
	c := &cli{t: t, path: paths[0], e: &e, env: bare(e.Environment()...)} // one of several is enough
	c.interfaceLife()
	c.instanceLife()
	c.env = bare(append(e.Environment(), "AWS_SECRET_ACCESS_KEY=wrong")...)
	c.fails("AuthFailure", "describe-vpcs")
}

func (c *cli) interfaceLife() {
	subnet := c.ask("Subnets[0].SubnetId", "describe-subnets --filters Name=cidr-block,Values=10.0.16.0/20")
	group := c.ask("SecurityGroups[0].GroupId", "describe-security-groups --filters Name=group-name,Values=nodes")
	c.is(`["10.0.0.0/16"]`, "Vpcs[].CidrBlock", "describe-vpcs")
	c.is("3", "InstanceTypes[0].NetworkInfo.MaximumNetworkInterfaces", "describe-instance-types --instance-types m5.large")
	node := string(c.e.Metadata[0].Instance)

	id := c.ask("NetworkInterface.NetworkInterfaceId", "create-network-interface --description made-by-cli --secondary-private-ip-address-count 2 --subnet-id "+subnet+
		" --groups "+group, "--tag-specifications", "ResourceType=network-interface,Tags=[{Key=made-by,Value=cli}]")
	of := " --network-interface-id " + id
	about := "describe-network-interfaces --network-interface-ids " + id
	c.is(`["available",3,"cli"]`, "NetworkInterfaces[0].[Status,length(PrivateIpAddresses),TagSet[0].Value]", about)
	c.is(`["`+id+`"]`, "NetworkInterfaces[].NetworkInterfaceId", "describe-network-interfaces --filters Name=tag:made-by,Values=cli Name=status,Values=available")
	c.is("4", "length(NetworkInterfaces)", "describe-network-interfaces --page-size 5")

	attachment := c.ask("AttachmentId", "attach-network-interface --device-index 2 --instance-id "+node+of)
	c.is(`["in-use","attached",2]`, "NetworkInterfaces[0].[Status,Attachment.Status,Attachment.DeviceIndex]", about)
	c.fails("InvalidParameterValue", "delete-network-interface"+of)
	c.ask("@", "modify-network-interface-attribute --attachment AttachmentId="+attachment+",DeleteOnTermination=true"+of)
	c.is("true", "NetworkInterfaces[0].Attachment.DeleteOnTermination", about)
	c.ask("@", "modify-network-interface-attribute --description other"+of)
	c.is("other", "NetworkInterfaces[0].Description", about)

	address := c.ask("AssignedPrivateIpAddresses[0].PrivateIpAddress", "assign-private-ip-addresses --secondary-private-ip-address-count 1"+of)
	prefix := c.ask("AssignedIpv4Prefixes[0].Ipv4Prefix", "assign-private-ip-addresses --ipv4-prefix-count 1"+of)
	v6 := c.ask("AssignedIpv6Addresses[0]", "assign-ipv6-addresses --ipv6-address-count 1"+of)
	c.is(`[4,["`+prefix+`"],["`+v6+`"]]`, "NetworkInterfaces[0].[length(PrivateIpAddresses),Ipv4Prefixes[].Ipv4Prefix,Ipv6Addresses[].Ipv6Address]", about)
	c.fails("PrivateIpAddressLimitExceeded", "assign-private-ip-addresses --secondary-private-ip-address-count 40"+of)
	c.ask("@", "unassign-private-ip-addresses --private-ip-addresses "+address+of)
	c.ask("@", "unassign-private-ip-addresses --ipv4-prefixes "+prefix+of)
	c.ask("@", "unassign-ipv6-addresses --ipv6-addresses "+v6+of)
	c.is(`[3,0]`, "NetworkInterfaces[0].[length(PrivateIpAddresses),length(Ipv6Addresses)]", about)

	c.ask("@", "create-tags --tags Key=more,Value=x --resources "+id)
	c.ask("@", "delete-tags --tags Key=made-by --resources "+id)
	c.is(`["more"]`, "NetworkInterfaces[0].TagSet[].Key", about)

	c.ask("@", "detach-network-interface --attachment-id "+attachment)
	c.is("available", "NetworkInterfaces[0].Status", about)
	c.fails("DryRunOperation", "delete-network-interface --dry-run"+of)
	c.ask("@", "delete-network-interface"+of)
	c.fails("InvalidNetworkInterfaceID.NotFound", about)
}

func (c *cli) instanceLife() {
	subnet := c.ask("Subnets[0].SubnetId", "describe-subnets --filters Name=cidr-block,Values=10.0.0.0/24")
	id := c.ask("Instances[0].InstanceId", "run-instances --image-id ami-0abcdef1234567890 --instance-type m5.xlarge --count 1 --client-token once --subnet-id "+subnet,
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=by-cli}]")
	c.is(id, "Instances[0].InstanceId", "run-instances --image-id ami-0abcdef1234567890 --instance-type m5.xlarge --count 1 --client-token once --subnet-id "+subnet,
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=by-cli}]")
	c.ask("@", "wait instance-running --instance-ids "+id)
	c.is(`["running","m5.xlarge"]`, "Reservations[0].Instances[0].[State.Name,InstanceType]", "describe-instances --instance-ids "+id)
	c.ask("@", "reboot-instances --instance-ids "+id)
	c.is(id, "TerminatingInstances[0].InstanceId", "terminate-instances --instance-ids "+id)
	c.ask("@", "wait instance-terminated --instance-ids "+id)
}

// TestBoto3: boto3 with credentials that it gets from the metadata of the instance that it is told it runs on.
func TestBoto3(t *testing.T) {
	if testing.Short() {
		t.Skip("Python is read for two seconds before the first call")
	}
	paths, why := programs([]string{"-c", "import boto3"}, "python3", "/usr/bin/python3")
	if len(paths) == 0 {
		t.Skip("needs boto3: " + why + " (apt-get install python3-boto3)")
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			_, e := start(t, programWorld(t))
			cmd := exec.CommandContext(t.Context(), path, "testdata/life.py", e.EC2, e.Metadata[0].URL)
			cmd.Env = bare("AWS_EC2_METADATA_SERVICE_ENDPOINT="+e.Metadata[0].URL, "AWS_DEFAULT_REGION=us-west-2", "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if _, text := admin(t, &e, "GET", "/ledger", ""); !strings.Contains(text, `"node": "node-1"`) {
				t.Errorf("boto3 said %s; its calls should be node-1's in the ledger, found\n%s", out, text)
			}
		})
	}
}
