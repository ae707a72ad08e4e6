package plugin

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// TestConfiguration: what each key comes to, up to its bounds, and that one which cannot be is named while the others
// are read: DEL goes on with them.
func TestConfiguration(t *testing.T) {
	longest := ipc.MaxTimeout.Milliseconds()
	for _, c := range []struct {
		keys string
		bad  string // the key that the error names; "" there is none
		read func(c *conf) bool
	}{
		{`"timeoutMS":100`, "", func(c *conf) bool { return c.Timeout == 100*time.Millisecond }},
		{fmt.Sprintf(`"timeoutMS":%d`, longest), "", func(c *conf) bool { return c.Timeout == ipc.MaxTimeout }},
		{`"timeoutMS":99`, "timeoutMS", func(c *conf) bool { return c.Timeout == defaultTimeout }},
		{fmt.Sprintf(`"timeoutMS":%d`, longest+1), "timeoutMS", func(c *conf) bool { return c.Timeout == defaultTimeout }},
		{`"timeoutMS":null`, "", func(c *conf) bool { return c.Timeout == defaultTimeout }},
		{`"localProtocol":1`, "", func(c *conf) bool { return c.Protocol == 1 }},
		{`"localProtocol":0`, "localProtocol", func(c *conf) bool { return c.Protocol == ipam.Version }},
		{`"localProtocol":"1"`, "localProtocol", func(c *conf) bool { return c.Protocol == ipam.Version }},
		{`"socket":"/s"`, "", func(c *conf) bool { return c.Socket == "/s" }},
		{`"socket":"s"`, "socket", func(c *conf) bool { return c.Socket == ipc.Socket }},
		{`"stateDir":""`, "stateDir", func(c *conf) bool { return c.StateDir == StateDir }},
		{`"stateDir":7`, "stateDir", func(c *conf) bool { return c.StateDir == StateDir }},
		{`"mtu":"1500"`, "", func(c *conf) bool { return c.MTU == 1500 }},
		{`"mtu":1500`, "", func(c *conf) bool { return c.MTU == 1500 }},
		{`"mtu":""`, "", func(c *conf) bool { return c.MTU == 0 }},
		{`"mtu":null`, "", func(c *conf) bool { return c.MTU == 0 }},
		{`"mtu":"much"`, "mtu", func(c *conf) bool { return c.MTU == 0 }},
		{`"mtu":true`, "mtu", func(c *conf) bool { return c.MTU == 0 }},
		{`"prevResult":null`, "", func(c *conf) bool { return c.PrevResult == nil }},
		{`"prevResult":{}`, "", func(c *conf) bool { return string(c.PrevResult) == "{}" }},
		{`"cniVersion":"1.0.0"`, "", func(c *conf) bool { return c.Version == "1.0.0" }},
		{`"pluginLogFile":1`, "pluginLogFile", func(c *conf) bool { return c.Version == "0.1.0" }},
		{`"cni.dev/attachments":[{"containerID":"","ifname":"eth0"}]`, keyLegacy, func(c *conf) bool { return !c.Validly }},
		{`"cni.dev/attachments":[]`, "", func(c *conf) bool { return c.Validly && len(c.Valid) == 0 }},
		{`"cni.dev/attachments":[{"containerID":"a","ifname":"b"}],` +
			`"cni.dev/valid-attachments":[{"containerID":"c","ifname":"d"}]`,
			"", func(c *conf) bool { return c.Validly && len(c.Valid) == 2 }},
	} {
		got, err := parseConf([]byte(`{"name":"net","vethPrefix":"eni","pluginLogLevel":"info",` + c.keys + `}`))
		if (err == nil) != (c.bad == "") ||
			err != nil && (!strings.Contains(err.Error(), c.bad) || codeOf(err) != types.ErrInvalidNetworkConfig) {
			t.Errorf("%s: %v, expected an error about %q", c.keys, err, c.bad)
		}
		if !c.read(&got) || got.Name != "net" || got.VethPrefix != "eni" || got.LogLevel != "info" {
			t.Errorf("%s: read as %+v", c.keys, got)
		}
	}
	if _, err := parseConf([]byte("7")); codeOf(err) != types.ErrDecodingFailure {
		t.Errorf("a number is a configuration: %v", err)
	}
}

// TestWhatPrevResultExpects: the interface of the pod by name and sandbox, its addresses and no other's.
func TestWhatPrevResultExpects(t *testing.T) {
	dir := t.TempDir()
	there, link, gone := filepath.Join(dir, "ns"), filepath.Join(dir, "link"), filepath.Join(dir, "gone")
	must.Do(t, os.WriteFile(there, nil, 0o600))
	must.Do(t, os.Symlink(there, link))
	host := &types100.Interface{Name: "eth0"} // of the host: it has no sandbox
	own := func(sandbox, mac string) *types100.Interface {
		return &types100.Interface{Name: "eth0", Sandbox: sandbox, Mac: mac}
	}
	ip := func(n int, text string) *types100.IPConfig {
		p := netip.MustParsePrefix(text)
		c := &types100.IPConfig{Address: net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if n >= -1 {
			c.Interface = types100.Int(n)
		}
		return c
	}
	const nobodys = -9
	one := netip.MustParsePrefix("10.0.0.9/32")
	for name, c := range map[string]struct {
		prev types100.Result
		code uint // of the error; 0: none
		mac  string
		ips  []netip.Prefix
	}{
		"its own and another's": {types100.Result{
			Interfaces: []*types100.Interface{host, nil, own(link, "0A:00:00:00:00:01")},
			IPs:        []*types100.IPConfig{nil, ip(0, "10.0.0.8/32"), ip(2, "10.0.0.9/32"), ip(nobodys, "10.0.0.7/24")}},
			0, "0a:00:00:00:00:01", []netip.Prefix{one, netip.MustParsePrefix("10.0.0.7/24")}},
		"a MAC that is a number": {types100.Result{Interfaces: []*types100.Interface{own(there, "7")}}, 0, "", nil},
		"no interface":           {types100.Result{Interfaces: []*types100.Interface{host}}, ipam.CodeDrifted, "", nil},
		"another sandbox": {types100.Result{Interfaces: []*types100.Interface{own(gone, "")}},
			ipam.CodeDrifted, "", nil},
		"an index past the end": {types100.Result{Interfaces: []*types100.Interface{own(there, "")},
			IPs: []*types100.IPConfig{ip(1, "10.0.0.9/32")}}, types.ErrInvalidNetworkConfig, "", nil},
		"an index below 0": {types100.Result{Interfaces: []*types100.Interface{own(there, "")},
			IPs: []*types100.IPConfig{ip(-1, "10.0.0.9/32")}}, types.ErrInvalidNetworkConfig, "", nil},
		"an address that is none": {types100.Result{Interfaces: []*types100.Interface{own(there, "")},
			IPs: []*types100.IPConfig{{}}}, types.ErrInvalidNetworkConfig, "", nil},
	} {
		v := &verb{name: ipc.Check, args: &skel.CmdArgs{IfName: "eth0", Netns: there}}
		e, err := v.expected(&c.prev)
		if codeOf(err) != c.code || err == nil && (e.mac != c.mac || !slices.Equal(e.ips, c.ips)) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if samePath(gone, there) || samePath(there, gone) || !samePath(gone, gone) {
		t.Error("what is not there is the same as what is, or not the same as itself")
	}
}

// TestPrefixOfANetwork: an IPv4 address may be written in sixteen bytes, and so may its mask.
func TestPrefixOfANetwork(t *testing.T) {
	four := net.IPv4(10, 0, 0, 9)
	for _, c := range []struct {
		in   net.IPNet
		want string // "": none
	}{
		{net.IPNet{IP: four.To4(), Mask: net.CIDRMask(24, 32)}, "10.0.0.9/24"},
		{net.IPNet{IP: four, Mask: net.CIDRMask(24, 32)}, "10.0.0.9/24"},
		{net.IPNet{IP: four, Mask: net.CIDRMask(120, 128)}, "10.0.0.9/24"},
		{net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}, "fd00::1/64"},
		{net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.IPv4Mask(255, 0, 255, 0)}, "fd00::1/0"},
		{net.IPNet{IP: four, Mask: net.CIDRMask(95, 128)}, ""},
		{net.IPNet{Mask: net.CIDRMask(24, 32)}, ""},
	} {
		if p, ok := prefix(&c.in); ok != (c.want != "") || ok && p.String() != c.want {
			t.Errorf("%v: %v, %v; expected %q", c.in, p, ok, c.want)
		}
	}
}

// TestHasRoute: table and destination are the same, gateway and link where they are asked for.
func TestHasRoute(t *testing.T) {
	via, dst := netip.MustParseAddr("169.254.1.1"), netip.MustParsePrefix("0.0.0.0/0")
	have := []route{{table: 254, dst: dst, via: via, link: 3}}
	for _, c := range []struct {
		want route
		ok   bool
	}{
		{route{table: 254, dst: dst}, true},
		{route{table: 254, dst: dst, via: via, link: 3}, true},
		{route{table: 254, dst: dst, via: via.Next()}, false},
		{route{table: 254, dst: dst, link: 4}, false},
		{route{table: 253, dst: dst}, false},
		{route{table: 254, dst: netip.MustParsePrefix("0.0.0.0/1")}, false},
	} {
		if hasRoute(have, c.want) != c.ok {
			t.Errorf("%+v: %v", c.want, !c.ok)
		}
	}
}

// TestRouteAsTheKernelSaysIt: the attributes go before the header, whose table has eight bits.
func TestRouteAsTheKernelSaysIt(t *testing.T) {
	var r netlink.Request
	r.Route(unix.RTM_NEWROUTE, 0, 24, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST)
	dst, via := netip.MustParseAddr("10.1.2.0"), netip.MustParseAddr("10.0.0.1")
	r.IP(unix.RTA_DST, dst)
	r.IP(unix.RTA_GATEWAY, via)
	r.U32(unix.RTA_OIF, 7)
	r.U32(unix.RTA_TABLE, 1000)
	want := route{table: 1000, dst: netip.PrefixFrom(dst, 24), via: via, link: 7}
	if got, ok := parseRoute(r.Last()[unix.NLMSG_HDRLEN:]); !ok || got != want {
		t.Errorf("read as %+v, %v", got, ok)
	}
}

// TestServedIsBelievedInDoubt: a node is not tainted for want of a file, and an answer without service is no service.
func TestServedIsBelievedInDoubt(t *testing.T) {
	k := contact{t.TempDir()}
	if k.reached(false); k.served() {
		t.Error("it has answered, and is said to have served")
	}
	for range 2 {
		if k.reached(true); !k.served() {
			t.Error("it serves, and is said not to")
		}
	}
	if k.reached(false); !k.served() {
		t.Error("it served once, which is forgotten")
	}
	file := filepath.Join(k.dir, servedFile)
	if !(contact{file}).served() {
		t.Error("whether it has served cannot be known, and is said not to be")
	}
	first, _ := k.missed(time.Hour)
	again, _ := k.missed(time.Hour + unreachable)
	after, _ := k.missed(time.Hour + 2*unreachable + 1)
	if first != 0 || again != unreachable || after != 0 {
		t.Errorf("out of reach for %v, %v at the bound of a silence, %v past it", first, again, after)
	}
	if list, err := os.ReadDir(k.dir); err != nil || len(list) != 2 {
		t.Errorf("%d files are left, %v", len(list), err)
	}
}

// TestLogIsPutAsideAtItsBound, and only a file is: what is something else is written to as it is, or not at all.
func TestLogIsPutAsideAtItsBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.log")
	for size, aside := range map[int64]bool{maxLog - 1: false, maxLog: true} {
		os.Remove(path)
		os.Remove(path + ".1")
		must.Do(t, os.WriteFile(path, nil, 0o600))
		must.Do(t, os.Truncate(path, size))
		f := must.Get(appendTo(path))(t)
		f.Close()
		if _, err := os.Stat(path + ".1"); (err == nil) != aside {
			t.Errorf("a log of %d bytes: put aside: %v", size, err == nil)
		}
	}
	fifo := path + ".fifo"
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	log, f := openLog(fifo, "info") // nobody reads it
	log.Info("into the void")
	f.Close()
	if f, err := appendTo(os.DevNull); err != nil {
		t.Errorf("%s: %v", os.DevNull, err)
	} else {
		f.Close()
	}
}

// TestRefusals: the daemon's code is the caller's, but for one that no CNI error has; its text says of what.
func TestRefusals(t *testing.T) {
	v := &verb{name: ipc.Add, att: ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"}}
	for _, c := range []struct {
		r    ipc.Response
		code uint
		text string
	}{
		{ipc.Response{}, 0, ""},
		{ipc.Response{Code: 11, Text: "cni add web: no address"}, 11, "cni add web: no address"},
		{ipc.Response{Code: 11, Text: "no address"}, 11, v.String() + ": ipamd refuses: no address"},
		{ipc.Response{Code: -1, Text: "cni x"}, types.ErrInternal, "cni x"},
	} {
		if err := v.refused(&c.r); codeOf(err) != c.code || err != nil && !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
	for want, r := range map[string]ipc.Response{"a; b": {Reasons: []string{"a", "b"}, Text: "c"}, "c": {Text: "c"}} {
		if got := reasons(&r); got != want {
			t.Errorf("%+v: %q", r, got)
		}
	}
	if reasons(&ipc.Response{}) == "" {
		t.Error("no reason is an empty text")
	}
}

// TestVerbSaysItsSubject: the pod where CNI_ARGS names one, the attachment where there is one, the network otherwise.
func TestVerbSaysItsSubject(t *testing.T) {
	att := ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"}
	for want, v := range map[string]*verb{
		"cni add default/web (aws-cni/c1/eth0)": {name: ipc.Add, att: att, pod: ipam.Pod{Namespace: "default", Name: "web"}},
		"cni del aws-cni/c1/eth0":               {name: ipc.Del, att: att},
		"cni gc aws-cni":                        {name: ipc.GC, att: ipam.Attachment{Network: "aws-cni"}},
	} {
		if got := v.String(); got != want {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
}

// TestNamesThatNoLinkHasAreRefused before anything else of the call is looked at.
func TestNamesThatNoLinkHasAreRefused(t *testing.T) {
	for _, name := range []string{"a b", "a\tb", "a\x00", "\xff"} {
		for verbName, do := range map[string]func(*verb) error{ipc.Add: (*verb).add, ipc.Check: (*verb).check, ipc.Del: (*verb).del} {
			v := &verb{name: verbName, args: &skel.CmdArgs{ContainerID: "c1", IfName: name, Netns: "/nowhere"}}
			err := do(v)
			if codeOf(err) != types.ErrInvalidEnvironmentVariables || !strings.Contains(err.Error(), "CNI_IFNAME") {
				t.Errorf("%s with CNI_IFNAME=%q: %v", verbName, name, err)
			}
		}
	}
}

// TestAPrevResultThatIsNoneIsRefused as what it is, and not as one that is missing.
func TestAPrevResultThatIsNoneIsRefused(t *testing.T) {
	for verbName, do := range map[string]func(*verb) error{ipc.Add: (*verb).add, ipc.Check: (*verb).check} {
		v := &verb{name: verbName, args: &skel.CmdArgs{ContainerID: "c1", IfName: "eth0", Netns: "/nowhere"}}
		v.conf.PrevResult = []byte(`[]`)
		if err := do(v); codeOf(err) != types.ErrInvalidNetworkConfig || !strings.Contains(err.Error(), "prevResult: ") {
			t.Errorf("%s: %v", verbName, err)
		}
	}
}

// TestAnsweredInTheCallersVersion, where it is one.
func TestAnsweredInTheCallersVersion(t *testing.T) {
	for conf, want := range map[string]string{`{"cniVersion":"0.4.0"}`: "0.4.0",
		`{"cniVersion":"9.9.9"}`: version.Current(), `{`: version.Current(), ``: version.Current()} {
		if got := spoken([]byte(conf)); got != want {
			t.Errorf("%s is answered in %s, expected %s", conf, got, want)
		}
	}
}
