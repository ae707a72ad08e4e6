package gate

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/runner"
)

const cluster = `{"kind": "List", "items": [
 {"kind": "Node", "metadata": {"name": "a", "labels": {"node.kubernetes.io/instance-type": "r5.2xlarge"}}},
 {"kind": "Node", "metadata": {"name": "b", "labels": {"node.kubernetes.io/instance-type": "r5.2xlarge"}}},
 {"kind": "Node", "metadata": {"name": "c", "labels": {"beta.kubernetes.io/instance-type": "m5.large"}}},
 {"kind": "Node", "metadata": {"name": "d", "labels": {"node.kubernetes.io/instance-type": "fargate"}}},
 PODS
 {"kind": "Pod", "spec": {"nodeName": "b", "hostNetwork": true}, "status": {"phase": "Running"}},
 {"kind": "Pod", "spec": {"nodeName": "b"}, "status": {"phase": "Succeeded"}},
 {"kind": "Pod", "spec": {}, "status": {"phase": "Pending"}},
 {"kind": "DaemonSet", "metadata": {"name": "aws-node"}, "spec": {"template": {"spec": {"containers": [{"env": [
   {"name": "WARM_IP_TARGET", "value": "5"}, {"name": "MINIMUM_IP_TARGET", "value": "10"}, {"name": "AWS_VPC_K8S_CNI_LOGLEVEL", "value": "DEBUG"}, {"name": "MAX_ENI"}]}]}}}}
]}`

func TestShape(t *testing.T) {
	pods := strings.Repeat(`{"kind": "Pod", "spec": {"nodeName": "b"}, "status": {"phase": "Running"}},`, 28) + `{"kind": "Pod", "spec": {"nodeName": "c"}, "status": {"phase": "Running"}},`
	s := must.Get(parseShape([]byte(strings.Replace(cluster, "PODS", pods, 1))))(t)
	if len(s.Types) != 2 || s.Types[0] != (NodeType{"r5.2xlarge", 2, 28}) || s.Types[1] != (NodeType{"m5.large", 1, 1}) || len(s.Settings) != 2 || len(s.Notes) != 1 {
		t.Fatalf("%+v", s)
	}
	data := must.Get(Files.ReadFile(Change))(t)
	f := parse(t, Change, string(data))
	for i, want := range [][]string{
		{"type=r5.2xlarge", "config MINIMUM_IP_TARGET=10 WARM_IP_TARGET=5", "start pods web 25 on node-1", "kube scale web 28", "pods.ready == 38", "kube roll web 12"},
		{"type=m5.large", "start pods web 3 on node-1", "kube scale web 6", "pods.ready == 16", "kube roll web 1"},
	} {
		g := must.Get(s.Shaped(f, s.Types[i]))(t)
		for _, w := range want {
			if !strings.Contains(g.String(), w) {
				t.Errorf("expected %q in\n%s", w, g)
			}
		}
		h := parse(t, Change, g.String())
		x := must.Get(h.Expand(h.Variants()[0]))(t)
		if _, err := sim.Check(x); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "{}", `{"kind": "List"}`, `{"kind": "List", "items": [{"kind": "Node"}]}`, strings.Replace(strings.Replace(cluster, "PODS", "", 1), `"5"`, `"many"`, 1)} {
		if s, err := parseShape([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

// TestShapedAsItIs: in the shape that the scenario has, its counts stay.
func TestShapedAsItIs(t *testing.T) {
	data := must.Get(Files.ReadFile(Change))(t)
	g, err := (&Shape{Settings: map[string]string{"WARM_IP_TARGET": "2"}}).Shaped(parse(t, Change, string(data)), NodeType{"m5.large", 1, 14})
	must.Do(t, err)
	for _, want := range []string{"pods.ready == 24", "kube scale web 14", "start   pods web 11 "} {
		if !strings.Contains(g.String(), want) {
			t.Errorf("expected %q in\n%s", want, g)
		}
	}
}

// TestShapedModes: a cluster's prefixes and its custom networking are in the shape, as many pods as these carry, and the script holds there.
func TestShapedModes(t *testing.T) {
	data := must.Get(Files.ReadFile(Change))(t)
	for _, c := range []struct {
		settings map[string]string
		typ      string
		wants    []string
	}{
		{map[string]string{"ENABLE_PREFIX_DELEGATION": "true", "WARM_IP_TARGET": "2"}, "m5.large", []string{"max-pods=110", "ENABLE_PREFIX_DELEGATION=true", "start pods web 96 "}},
		{map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}, "m4.large", []string{"ENABLE_PREFIX_DELEGATION=true", "start pods web 4 "}}, // it has none
		{map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "WARM_IP_TARGET": "2"}, "m5.large", []string{"subnets=100.64.0.0/20 eniconfigs=default:2", "start pods web 4 "}},
	} {
		g, err := (&Shape{Settings: c.settings}).Shaped(parse(t, Change, string(data)), NodeType{c.typ, 1, 200})
		must.Do(t, err)
		for _, want := range c.wants {
			if !strings.Contains(g.String(), want) {
				t.Errorf("%v: expected %q in\n%s", c.settings, want, g)
			}
		}
		l := must.Get(runner.Load(runner.Sim(), Change, []byte(g.String())))(t)
		if r := l.Run(runner.Options{Seed: runner.DefaultSeed}); r.Status != runner.Held {
			t.Errorf("%v: %s", c.settings, r.Report())
		}
	}
}
