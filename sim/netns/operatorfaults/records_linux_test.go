package operatorfaults_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// assigned says that exactly these pods have addresses, and their own.
func (m *machine) assigned(pods ...pod) {
	m.t.Helper()
	want := map[string]netip.Addr{}
	for _, p := range pods {
		want[p.id] = p.address
	}
	rows := m.view().Rows
	for _, r := range rows {
		if r.State != ipam.Assigned {
			continue
		}
		if a, ok := want[r.Att.ContainerID]; !ok || a != r.Address {
			m.t.Errorf("%v is assigned to %v, expected %v", r.Address, r.Att, a)
		}
		delete(want, r.Att.ContainerID)
	}
	if len(want) > 0 {
		m.t.Errorf("without an address: %v\nrows: %+v\n%s", want, rows, m.log())
	}
}

// durable says that the record on disk can be read and holds these pods' addresses.
func (m *machine) durable(pods ...pod) {
	m.t.Helper()
	m.until("the record holds every pod", func() bool {
		data, err := m.box.ReadFile(node.Records)
		if err != nil {
			return false
		}
		rows, err := ipam.DecodeRun(0, 0, data)
		if err != nil {
			return false
		}
		has := 0
		for _, r := range rows {
			if r.State == ipam.Assigned && slices.ContainsFunc(pods, func(p pod) bool { return p.id == r.Att.ContainerID && p.address == r.Address }) {
				has++
			}
		}
		return has == len(pods)
	})
}

// damages are what can become of ipam.json.
var damages = map[string]struct {
	make func(m *machine, good []byte)
	says string
}{
	"truncated": {func(m *machine, good []byte) { must.Do(m.t, m.box.WriteRecords(good[:len(good)/2])) }, "unexpected end of JSON"},
	"empty":     {func(m *machine, _ []byte) { must.Do(m.t, m.box.WriteRecords(nil)) }, "the file is empty"},
	"random":    {func(m *machine, _ []byte) { m.sh("head -c 5000 /dev/urandom > " + node.Records) }, "expected an object"},
	"other JSON": {func(m *machine, _ []byte) {
		must.Do(m.t, m.box.WriteRecords([]byte(`{"apiVersion":"v1","kind":"Pod"}`)))
	}, "version is missing"},
	"a list": {func(m *machine, _ []byte) { must.Do(m.t, m.box.WriteRecords([]byte(`[1,2]`))) }, "expected an object"},
	"null":   {func(m *machine, _ []byte) { must.Do(m.t, m.box.WriteRecords([]byte(`null`))) }, "found null"},
	"future version": {func(m *machine, good []byte) {
		must.Do(m.t, m.box.WriteRecords(bytes.Replace(good, []byte("vpc-cni-ipam/1"), []byte("vpc-cni-ipam/2"), 1)))
	}, "vpc-cni-ipam/2"},
	"a row is bad": {func(m *machine, good []byte) {
		must.Do(m.t, m.box.WriteRecords(bytes.Replace(good, []byte(`"ipv4":"10.`), []byte(`"ipv4":"ten.`), 1)))
	}, "allocation 1 of"},
	"twice": {func(m *machine, good []byte) {
		var top map[string]json.RawMessage
		must.Do(m.t, json.Unmarshal(good, &top))
		var rows []json.RawMessage
		must.Do(m.t, json.Unmarshal(top["allocations"], &rows))
		top["allocations"], _ = json.Marshal(append(rows, rows[0]))
		twice, _ := json.Marshal(top)
		must.Do(m.t, m.box.WriteRecords(twice))
	}, "found two"},
	"directory": {func(m *machine, _ []byte) { m.sh("rm " + node.Records + " && mkdir -p " + node.Records + "/x") }, "expected a file"},
	"link":      {func(m *machine, _ []byte) { m.sh("rm " + node.Records + " && ln -s /etc/services " + node.Records) }, "expected a file"},
	"FIFO":      {func(m *machine, _ []byte) { m.sh("rm " + node.Records + " && mkfifo " + node.Records) }, "expected a file"},
	"huge":      {func(m *machine, _ []byte) { m.sh("truncate -s 65M " + node.Records) }, "expected at most"},
}

// TestDamagedRecord: a record that cannot be read is set aside, what runs is found again in kernel and runtime, keeps its address and
// its packets, and the operator is told.
func TestDamagedRecord(t *testing.T) {
	for name, c := range damages {
		t.Run(name, func(t *testing.T) {
			m := serving(t)
			a, b, old := m.add("a"), m.add("b"), m.add("old")
			m.del(old)
			m.durable(a, b)
			m.kill()
			good := must.Get(m.box.ReadFile(node.Records))(m.t)
			c.make(m, good)
			m.start()
			m.serves()
			m.assigned(a, b)
			m.answer(a, b)
			m.logs("a record cannot be read", node.Records, c.says, "ipam.json.bad-1")
			m.says("the checkpoint was rebuilt", c.says)
			m.sh("test -e " + node.Records + ".bad-1")
			m.durable(a, b)
			m.passes(5 * time.Minute) // whoever believed the damaged record would free something by now
			m.assigned(a, b)
			m.answer(a, b)
			d := m.add("d")
			if d.address == a.address || d.address == b.address {
				t.Fatalf("%v was given away twice", d.address)
			}
			m.answer(a, b, d)
			for _, p := range []pod{a, b, d} {
				m.del(p)
			}
			m.assigned()
			m.term()
		})
	}
}

// TestNewerRecord: what a later version of ours wrote is read, and what this version does not know is kept.
func TestNewerRecord(t *testing.T) {
	m := serving(t)
	a, b := m.add("a"), m.add("b")
	m.kill()
	good := must.Get(m.box.ReadFile(node.Records))(m.t)
	newer := strings.Replace(strings.Replace(string(good), `"record":2`, `"record":99`, 1), `"ifName":"eth0"`, `"ifName":"eth0","colour":"blue"`, 1)
	if newer == string(good) {
		t.Fatalf("nothing was changed in %s", good)
	}
	must.Do(m.t, m.box.WriteRecords([]byte(newer)))
	m.start()
	m.serves()
	m.logs("written by another version", "99")
	m.assigned(a, b)
	m.answer(a, b, m.add("c"))
	if data, _ := m.box.ReadFile(node.Records); !strings.Contains(string(data), `"colour":"blue"`) {
		t.Errorf("what a newer version wrote is lost: %s", data)
	}
	if r := m.status().Reasons; len(r) > 0 {
		t.Errorf("it complains: %q", r)
	}
}

// TestDamagedRecordReadOnly: nothing can be set aside or written. Pods go on, none is freed, none is taken, until it can be written.
func TestDamagedRecordReadOnly(t *testing.T) {
	m := serving(t)
	a, b := m.add("a"), m.add("b")
	m.kill()
	must.Do(m.t, m.box.WriteRecords([]byte("{")))
	// The record's own folder is read-only; lock and socket are elsewhere.
	m.sh("mkdir /tmp/records && cp " + node.Records + " /tmp/records/ && mount --bind /tmp/records /tmp/records && mount -o remount,ro,bind /tmp/records")
	m.start("AWS_VPC_K8S_CNI_BACKING_STORE=/tmp/records/ipam.json")
	m.serves()
	m.assigned(a, b)
	m.answer(a, b)
	m.logs("a record cannot be read", "could not be set aside", "read-only file system")
	m.says("the checkpoint was rebuilt", "could not be set aside", "read-only file system")
	m.passes(31 * time.Second) // without its record it lets every address rest for a cool-down
	p := m.sandbox("c")
	if e := m.run(runOf(cri.ADD, p)); e.Code != 11 || !strings.Contains(e.Text, "read-only file system") {
		t.Errorf("ADD: code %d: %s", e.Code, e.Text)
	}
	m.passes(5 * time.Minute)
	m.assigned(a, b)
	m.answer(a, b)
	m.up()
	m.sh("mount -o remount,rw,bind /tmp/records")
	m.passes(70 * time.Second) // the longest pause between tries
	m.answer(m.add("d"), a, b)
	m.del(a)
	m.answer(b)
}

// TestDamagedRecordWithoutRuntime: the kernel alone remembers.
func TestDamagedRecordWithoutRuntime(t *testing.T) {
	m := serving(t)
	a, b := m.add("a"), m.add("b")
	m.kill()
	m.sh("rm " + criSocket)
	must.Do(m.t, m.box.WriteRecords([]byte("{")))
	m.start()
	m.serves()
	m.assigned(a, b)
	m.answer(a, b)
	m.says("the checkpoint was rebuilt", "the runtime's list of sandboxes cannot be believed")
	m.passes(10 * time.Minute)
	m.assigned(a, b)
	m.answer(a, b, m.add("c"))
	m.del(a)
	m.answer(b)
}

// TestDamagedIntents: the record of EC2 intents is damaged: it is set aside, said, and the node serves.
func TestDamagedIntents(t *testing.T) {
	m := serving(t)
	a := m.add("a")
	m.kill()
	must.Do(m.t, m.box.WriteFile(node.StateDir+"/enis.json", []byte(`{"version":"enilab-intents/9"`)))
	m.start()
	m.serves()
	m.logs("a record cannot be read", "enis.json", "enis.json.bad-1")
	m.says("enis.json")
	m.assigned(a)
	m.answer(a)
}

// upstreamRecord is amazon-vpc-cni-k8s's ipam.json (pkg/ipamd/datastore/checkpoint.go of 1.23.1), field by field.
type upstreamRecord struct {
	Version     string `json:"version"`
	Allocations []struct {
		NetworkName         string `json:"networkName"`
		ContainerID         string `json:"containerID"`
		IfName              string `json:"ifName"`
		IPv4                string `json:"ipv4,omitempty"`
		IPv6                string `json:"ipv6,omitempty"`
		AllocationTimestamp int64  `json:"allocationTimestamp"`
		Metadata            struct {
			K8SPodNamespace string `json:"k8sPodNamespace,omitempty"`
			K8SPodName      string `json:"k8sPodName,omitempty"`
			InterfacesCount int    `json:"interfacesCount,omitempty"`
		} `json:"metadata"`
	} `json:"allocations"`
}

// TestRecordForUpstream: what the daemon writes is what amazon-vpc-cni-k8s reads, with its types.
func TestRecordForUpstream(t *testing.T) {
	m := serving(t)
	a, b, old := m.add("a"), m.add("b"), m.add("old")
	m.del(old) // it cools down, which upstream does not record: it must not be an allocation
	m.durable(a, b)
	data := must.Get(m.box.ReadFile(node.Records))(m.t)
	var got upstreamRecord
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("upstream cannot read %s: %v", data, err)
	}
	if got.Version != "vpc-cni-ipam/1" || len(got.Allocations) != 2 {
		t.Fatalf("version %q, %d allocations, in %s", got.Version, len(got.Allocations), data)
	}
	for _, r := range got.Allocations {
		p := a
		if r.ContainerID == b.id {
			p = b
		}
		m.mu.Lock()
		now := time.Now().Add(m.offset)
		m.mu.Unlock()
		when := time.Unix(0, r.AllocationTimestamp)
		if r.NetworkName != "aws-cni" || r.ContainerID != p.id || r.IfName != "eth0" || r.IPv4 != p.address.String() || r.IPv6 != "" ||
			r.Metadata.K8SPodNamespace != "default" || r.Metadata.K8SPodName != p.name || r.Metadata.InterfacesCount != 1 ||
			when.After(now.Add(time.Minute)) || when.Before(now.Add(-time.Hour)) {
			t.Errorf("allocation %+v (%v) of pod %+v", r, when, p)
		}
	}
	// A member of another type would stop upstream; so would one of its own names where it does not expect it.
	var top map[string]json.RawMessage
	must.Do(m.t, json.Unmarshal(data, &top))
	for k := range top {
		if !slices.Contains([]string{"version", "allocations", "enilab"}, k) {
			t.Errorf("%q stands at the top", k)
		}
	}
}

// upstreamPod makes a pod as amazon-vpc-cni-k8s's plugin does (cmd/routed-eni-cni-plugin/driver of 1.23.1): no alias, a random MAC, rules
// 512 and, on a secondary ENI, 1536.
func (m *machine) upstreamPod(name string, address netip.Addr, table int) pod {
	m.t.Helper()
	p := m.sandbox(name)
	p.address = address
	inside := must.Get(netns.GetFromPath(m.box.Root() + "/run/netns/cni-" + name))(m.t)
	defer inside.Close()
	one := netlink.NewIPNet(address.AsSlice())
	gateway := netlink.NewIPNet(dataplane.Gateway().AsSlice())
	must.Do(m.t, vpc.Do(m.box.Netns(), func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = dataplane.HostVethName("eni", "default", name), 9001
		host := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(inside)}
		if err := netlink.LinkAdd(host); err != nil {
			return err
		}
		out, err := netlink.LinkByName(attrs.Name)
		if err != nil {
			return err
		}
		h, err := netlink.NewHandleAt(inside)
		if err != nil {
			return err
		}
		defer h.Close()
		in, err := h.LinkByName("eth0")
		if err != nil {
			return err
		}
		to := netlink.NewRule()
		to.Priority, to.Dst, to.Table = 512, one, dataplane.MainTable
		from := netlink.NewRule()
		from.Priority, from.Src, from.Table = 1536, one, table
		steps := []func() error{
			func() error { return netlink.LinkSetUp(out) },
			func() error { return h.LinkSetUp(in) },
			func() error {
				return h.RouteAdd(&netlink.Route{LinkIndex: in.Attrs().Index, Dst: gateway, Scope: netlink.SCOPE_LINK})
			},
			func() error { return h.AddrAdd(in, &netlink.Addr{IPNet: one}) },
			func() error {
				return h.RouteAdd(&netlink.Route{LinkIndex: in.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, Gw: gateway.IP})
			},
			func() error {
				return h.NeighAdd(&netlink.Neigh{LinkIndex: in.Attrs().Index, State: netlink.NUD_PERMANENT, IP: gateway.IP, HardwareAddr: out.Attrs().HardwareAddr})
			},
			func() error {
				return netlink.RouteReplace(&netlink.Route{LinkIndex: out.Attrs().Index, Dst: one, Scope: netlink.SCOPE_LINK})
			},
			func() error { return netlink.RuleAdd(to) },
			func() error {
				if table == dataplane.MainTable {
					return nil
				}
				return netlink.RuleAdd(from)
			},
		}
		for i, step := range steps {
			if err := step(); err != nil {
				return fmt.Errorf("upstream's pod %s, step %d: %w", name, i+1, err)
			}
		}
		return nil
	}))
	m.runs(p)
	m.cached(p, table)
	return p
}

// cached leaves what libcni kept of upstream's result: the pod's MAC is its route table there.
func (m *machine) cached(p pod, table int) {
	m.t.Helper()
	result := map[string]any{"cniVersion": "0.4.0", "dns": map[string]any{},
		"interfaces": []any{map[string]any{"name": dataplane.HostVethName("eni", "default", p.name)},
			map[string]any{"name": "eth0", "sandbox": "/var/run/netns/cni-" + p.name, "mac": fmt.Sprint(table)},
			map[string]any{"name": "dummy" + p.id[:11], "mac": "0", "sandbox": fmt.Sprint(table - 1)}},
		"ips": []any{map[string]any{"version": "4", "interface": 1, "address": p.address.String() + "/32"}}}
	entry := map[string]any{"kind": "cniCacheV1", "containerId": p.id, "config": base64.StdEncoding.EncodeToString([]byte(`{"cniVersion":"0.4.0","name":"aws-cni","plugins":[{"type":"aws-cni"}]}`)),
		"ifName": "eth0", "networkName": "aws-cni", "result": result}
	data := must.Get(json.Marshal(entry))(m.t)
	must.Do(m.t, m.box.WriteFile(node.CacheDir+"/results/aws-cni-"+p.id+"-eth0", data))
}

// TestTakeOver: a node on which amazon-vpc-cni-k8s ran: its record is read, its pods keep links, addresses and packets, and DEL works
// for them.
func TestTakeOver(t *testing.T) {
	m := newMachine(t)
	m.init()
	on2 := m.secondENI(3)
	m.mu.Lock()
	in, _ := m.cloud.InstanceOf(m.inst)
	primary, _ := m.cloud.ENI(in.Interfaces[0].ENI)
	m.mu.Unlock()
	pods := []pod{m.upstreamPod("web-0", primary.Secondaries[0], dataplane.MainTable), m.upstreamPod("web-1", primary.Secondaries[3], dataplane.MainTable),
		m.upstreamPod("web-2", on2[1], dataplane.TableOf(1))}
	record := upstreamRecord{Version: "vpc-cni-ipam/1"}
	for _, p := range pods {
		var one upstreamRecord
		must.Do(m.t, json.Unmarshal(fmt.Appendf(nil, `{"allocations":[{"networkName":"aws-cni","containerID":%q,"ifName":"eth0","ipv4":%q,"allocationTimestamp":%d,`+
			`"metadata":{"k8sPodNamespace":"default","k8sPodName":%q,"interfacesCount":1}}]}`, p.id, p.address, time.Now().UnixNano(), p.name), &one))
		record.Allocations = append(record.Allocations, one.Allocations...)
	}
	data := must.Get(json.Marshal(&record))(m.t)
	must.Do(m.t, m.box.WriteRecords(data))
	before := m.inventory()
	m.start()
	m.serves()
	m.assigned(pods...)
	m.answer(pods...)
	for _, d := range before.Diff(m.inventory()) {
		for _, p := range pods {
			veth := dataplane.HostVethName("eni", "default", p.name)
			alias := fmt.Sprintf("%q", dataplane.Alias("aws-cni", p.id, "eth0", p.address))
			if d == "- link "+veth+" veth" || d == "+ link "+veth+" veth "+alias { // all that is new
				continue
			}
			if strings.Contains(d, p.address.String()+"/") || strings.Contains(d, veth) {
				t.Errorf("what upstream made for %s is changed: %s", p.name, d)
			}
		}
	}
	m.passes(10 * time.Minute)
	m.assigned(pods...)
	m.answer(pods...)
	m.kill()
	m.start()
	m.serves()
	m.assigned(pods...)
	ours := m.add("ours")
	m.answer(append(pods, ours)...)
	for _, p := range pods {
		m.del(p)
		if left := m.leftOf(p); left != "" {
			t.Errorf("after DEL of %s there is %s", p.name, left)
		}
	}
	m.assigned(ours)
	m.answer(ours)
	if r := m.status().Reasons; len(r) > 0 {
		t.Errorf("it complains: %q", r)
	}
}

// leftOf is what a node still has of a pod.
func (m *machine) leftOf(p pod) string {
	m.t.Helper()
	i := m.inventory()
	for _, list := range [][]string{i.Links, i.Rules, i.Routes} {
		for _, l := range list {
			if strings.Contains(l, p.address.String()+"/") || strings.Contains(l, p.address.String()+" ") || strings.HasSuffix(l, p.address.String()) ||
				strings.Contains(l, dataplane.HostVethName("eni", "default", p.name)) {
				return l
			}
		}
	}
	return ""
}

// secondENI attaches another ENI, as another daemon has, and gives its addresses.
func (m *machine) secondENI(addresses int) []netip.Addr {
	m.t.Helper()
	m.mu.Lock()
	in, _ := m.cloud.InstanceOf(m.inst)
	made := m.cloud.Serve(m.now(), &ec2.Request{Action: ec2.CreateNetworkInterface, Caller: m.inst, Subnet: in.Subnet, SecondaryCount: addresses, ClientToken: "t", Description: "aws-K8S-" + string(m.inst),
		Tags: []ec2.Tag{{Key: "node.k8s.amazonaws.com/instance_id", Value: string(m.inst)}}})
	attached := m.cloud.Serve(m.now(), &ec2.Request{Action: ec2.AttachNetworkInterface, Caller: m.inst, ENI: made.ENI.ID, Instance: m.inst, DeviceIndex: 1})
	m.pump()
	m.mu.Unlock()
	if made.Code+attached.Code != "" {
		m.t.Fatalf("a second ENI: %s %s", made.Message, attached.Message)
	}
	m.until("its link is there", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.links[made.ENI.MAC] != ""
	})
	return made.ENI.Secondaries
}
