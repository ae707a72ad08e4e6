package kind

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fake "github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/cri"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
)

// line parses the last line of a scenario.
func line(t *testing.T, text string) *scn.Line {
	t.Helper()
	if !strings.HasPrefix(text, "cluster") {
		text = "cluster nodes=2\n" + text
	}
	f := must.Get(scn.Parse("test.scn", []byte(text+"\n")))(t)
	return &f.Lines[strings.Count(text, "\n")]
}

// TestCan: what cannot be done has a sentence; everything else can.
func TestCan(t *testing.T) {
	noRepair, _ := mutants.ByName("no-repair")
	one, two := &World{members: make(members, 2)}, &World{members: make(members, 3)}
	one.witness, two.witness = &judge.Witness{}, &judge.Witness{Mutant: &noRepair}
	for _, c := range []struct {
		w    *World
		line string
		says string
	}{
		{one, "cluster nodes=1 runtime=containerd type=m5.large", ""},
		{one, "cluster nodes=1 runtime=dockershim", "kind's containerd; the rest"},
		{one, "cluster nodes=1 subnet=10.0.1.0/24 runtime=containerd", ""},
		{one, "cluster nodes=1 subnet=10.0.1.0/24:prefixes=10.0.1.128/25 runtime=containerd", ""},
		{one, "config WARM_ENI_TARGET=1", ""},
		{one, "at 0s node-1 restart", ""},
		{two, "at 0s node-1 restart", ""},
		{one, "at 0s node-1 restart WARM_IP_TARGET=1", ""},
		{two, "at 0s node-* restart WARM_IP_TARGET=1", ""},
		{two, "at 0s node-2 restart WARM_IP_TARGET=1", ""},
		{one, "at 0s node-1 upgrade to=1 part=plugin", ""},
		{one, "at 0s node-1 upgrade to=amazon@here", "image is enilab's"},
		{one, "at 0s node-1 gc valid=all", "never calls"},
		{one, "at 0s node-1 terminate", ""},
		{one, "at 0s node-1 interrupt-dumps", "NLM_F_DUMP_INTR"},
		{one, "at 0s pod web-0 hide", "on demand"},
		{one, "at 0s node-1 flush-routes", "the API server"},
		{one, "at 0s node-1 flush-routes table=2", ""},
		{one, "at 0s node-1 fail-dels times=2", ""},
		{one, "at 0s pod web-0 hang", ""},
		{one, "at 0s ec2 lose any", ""},
		{one, `against no-repair breaks "nothing is leaked"`, "--against no-repair plays it"},
		{two, `against no-repair breaks "nothing is leaked"`, ""},
		{two, `against no-sweep breaks "nothing is leaked"`, "--against no-sweep plays it"},
		{one, "at 0s expect node-1 enis == 2", ""},
		{one, `always "nothing is leaked"`, ""},
	} {
		err := c.w.Can(line(t, c.line))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.line, err, c.says)
		}
	}
}

// TestExcuse: a mark is missed only where everything was done that might lead there.
func TestExcuse(t *testing.T) {
	w := &World{}
	if err := w.Excuse("gc-refused", nil); err != nil {
		t.Error(err)
	}
	if err := w.Excuse("gc-refused", []*scn.Action{line(t, "at 0s node-1 gc valid=all").Stmt.(*scn.At).Action}); err == nil || !strings.Contains(err.Error(), "gc-refused, and line 2") {
		t.Error(err)
	}
}

// object is a pod as the API server has it.
func object(uid, name, workload, node string, change func(*corev1.Pod)) *corev1.Pod {
	k := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Labels: map[string]string{workloadLabel: workload}}}
	k.Spec.NodeName, k.Status.Phase, k.Status.PodIP = node, corev1.PodRunning, "10.0.0.9"
	k.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(k)
	}
	return k
}

// TestPods: a Deployment's pods are found by their age, a StatefulSet's by their name, and each change is counted.
func TestPods(t *testing.T) {
	p, none := &pods{byUID: map[string]*pod{}, changes: map[string]uint64{}}, func(*pod) bool { return false }
	ordinal := func(k *corev1.Pod) { k.Labels["apps.kubernetes.io/pod-index"] = "0" }
	dying := func(k *corev1.Pod) { k.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for _, k := range []*corev1.Pod{object("1", "web-x-7", "web", "a", nil), object("2", "db-0", "db", "b", ordinal), object("3", "web-x-3", "web", "b", nil)} {
		p.put(k)
	}
	for name, uid := range map[string]string{"web-0": "1", "web-1": "3", "web-x-3": "3", "db-0": "2", "web-2": "", "db-1": "", "web": "", "0": "", "": "", "web--1": ""} {
		if q, ok := p.find(name); ok != (uid != "") || q.uid != uid {
			t.Errorf("%q is %q, want %q", name, q.uid, uid)
		}
	}
	if why := p.unsettled(map[string]int{"web": 2, "db": 1}, none); why != "" {
		t.Error(why)
	}
	if why := p.unsettled(map[string]int{"web": 3, "db": 1}, none); why != "2 of 3 pods of web are there" {
		t.Error(why)
	}
	before := p.changed("a")
	p.put(object("1", "web-x-7", "web", "a", dying))
	why := p.unsettled(nil, none)
	if q, _ := p.find("web-0"); p.changed("a") != before+1 || !q.deleting || q.uid != "1" || !strings.Contains(why, "web-x-7") {
		t.Errorf("a deletion: %+v, %d changes", q, p.changed("a"))
	}
	hangs := func(q *pod) bool { return q.uid == "1" || q.uid == "2" }
	p.put(object("2", "db-0", "db", "b", func(k *corev1.Pod) { ordinal(k); dying(k) }))
	if why := p.unsettled(map[string]int{"web": 1, "db": 1}, hangs); why != "" {
		t.Errorf("a Deployment's pod that hangs has another one in its place, and a StatefulSet waits for its: %s", why)
	}
	p.drop(object("1", "web-x-7", "web", "a", nil))
	p.put(object("4", "db-0", "db", "b", ordinal)) // the next incarnation, before the old one's end is heard of
	if q, _ := p.find("web-0"); q.uid != "3" {
		t.Errorf("web-0 is %q", q.uid)
	}
	if q, _ := p.find("db-0"); q.uid != "4" || q.address != netip.MustParseAddr("10.0.0.9") {
		t.Errorf("db-0 is %+v", q)
	}
	if list := p.of("db"); len(list) != 2 || list[0].uid != "2" {
		t.Errorf("db: %+v", list)
	}
}

// TestPodOfLostMachine: nobody waits for a pod to become ready whose machine is gone.
func TestPodOfLostMachine(t *testing.T) {
	p := &pods{byUID: map[string]*pod{}, changes: map[string]uint64{}}
	p.put(object("1", "web-x-7", "web", "a", nil))
	p.put(object("2", "web-x-8", "web", "b", func(k *corev1.Pod) { k.Status.Conditions = nil }))
	want := map[string]int{"web": 2}
	if why := p.unsettled(want, func(*pod) bool { return false }); !strings.Contains(why, "web-x-8 is not ready") {
		t.Errorf("%q, expected that web-x-8 is not ready", why)
	}
	if why := p.unsettled(want, func(q *pod) bool { return q.node == "b" }); why != "" {
		t.Errorf("its machine is gone, and somebody waits: %s", why)
	}
}

// TestTemplatePatch: every container gets the variables, the daemon its command, and nothing is rolled by it.
func TestTemplatePatch(t *testing.T) {
	d := &appsv1.DaemonSet{}
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "aws-node"}}
	patch, err := templatePatch(d, daemonTemplate{2, `{"WARM_IP_TARGET":"3"}`}, []string{"/ipamd", "--x"})
	want := `{"spec":{"template":{"spec":{` +
		`"containers":[{"name":"aws-node","command":["/ipamd","--x"],"env":[{"name":"WARM_IP_TARGET","value":"3"}]}],` +
		`"initContainers":[{"name":"init","env":[{"name":"WARM_IP_TARGET","value":"3"}]}]}},` +
		`"updateStrategy":{"rollingUpdate":null,"type":"OnDelete"}}}`
	if err != nil || string(patch) != want {
		t.Errorf("%v: %s", err, patch)
	}
}

// TestConfigOf: a plugin run by hand reads what the runtime passes.
func TestConfigOf(t *testing.T) {
	raw := must.Get(configOf(conflist.Make(conflist.Options{})))(t)
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil || got["name"] != "aws-cni" || got["cniVersion"] != "1.1.0" || got["type"] != "aws-cni" || got["vethPrefix"] != "eni" {
		t.Errorf("%v: %s", err, raw)
	}
	for _, bad := range []string{"", "{", `{"plugins":[{"type":"ptp"}]}`} {
		if _, err := configOf([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestNetnsOf: the namespace is found in what containerd says, and not by a link that would be followed on the host.
func TestNetnsOf(t *testing.T) {
	info := `{"pid":4,"runtimeSpec":{"linux":{"namespaces":[{"type":"pid"},{"type":"network","path":"/var/run/netns/cni-1"}]}}}`
	if p, err := netnsOf(info); err != nil || p != "/run/netns/cni-1" {
		t.Errorf("%q, %v", p, err)
	}
	for _, bad := range []string{"", "{}"} {
		if p, err := netnsOf(bad); err == nil {
			t.Errorf("%q is %q", bad, p)
		}
	}
}

// TestStandIn: what the daemon's own client hears of each thing that may stand in the runtime's place.
func TestStandIn(t *testing.T) {
	dir := t.TempDir()
	runtime, path := filepath.Join(dir, "containerd.sock"), filepath.Join(dir, "cri.sock")
	l := must.Get(net.Listen("unix", runtime))(t)
	right := served(l, newFakeRuntime())
	defer right.Close()
	r := must.Get(cri.Dial(path))(t)
	defer r.Close()
	for i, c := range []struct {
		s         models.Socket
		sandboxes int
		says      string
	}{
		{models.Right, 1, ""}, {models.Empty, 0, ""}, {models.Partial, 0, "deadline"}, {models.Unimplemented, 0, "nimplemented"}, {models.Absent, 0, "no such file"}, {models.Right, 1, ""},
	} {
		stands := must.Get(standIn(c.s, path, runtime))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		list, err := r.Sandboxes(ctx)
		cancel()
		if len(list) != c.sandboxes || c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%d, %s: %d sandboxes, %v; want %d and %q", i, c.s.String(), len(list), err, c.sandboxes, c.says)
		}
		if stands != nil {
			_ = stands.Close()
		}
	}
}

// TestMaxPods: kubelet is told of no more pods than the mode has addresses for, which the daemon would call a mistake.
func TestMaxPods(t *testing.T) {
	for _, c := range []struct {
		head string
		want int
	}{
		{"cluster nodes=1 type=m5.large", podsPerNode},
		{"cluster nodes=1 type=m5.large max-pods=7", 7},
		{"cluster nodes=1 type=m5.large\nconfig AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true", 20},
		{"cluster nodes=1 type=t3.small\nconfig AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true ENABLE_PREFIX_DELEGATION=true", 98},
		{"cluster nodes=1 type=m5.large\nconfig AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true ENABLE_PREFIX_DELEGATION=true", podsPerNode},
	} {
		f := must.Get(scn.Parse("max-pods.scn", []byte(c.head+"\nalways \"nothing is leaked\"\nat 1s kube create web 1\n")))(t)
		w := &World{scenario: must.Get(sim.Check(f))(t)}
		if got := w.maxPods(); got != c.want {
			t.Errorf("%s: %d pods, expected %d", c.head, got, c.want)
		}
	}
}

// oneSandbox is a runtime with one pod.
type oneSandbox struct{}

func (oneSandbox) Sandboxes(context.Context) ([]fake.Sandbox, error) {
	return []fake.Sandbox{{ID: "0123456789abcdef", Namespace: "default", Name: "web-0", UID: "u", Ready: true, IP: netip.MustParseAddr("10.0.0.9")}}, nil
}

func (oneSandbox) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "2"}, nil
}

func newFakeRuntime() *criserver.Server { return criserver.New(oneSandbox{}) }
