package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// Shape is what a cluster's nodes are like, as far as an upgrade meets it.
type Shape struct {
	// Types are the instance types, those of most nodes first.
	Types []NodeType
	// Settings are the daemon's that make a pool: WARM_IP_TARGET and the like, prefixes, and whether pods have subnets of their own.
	Settings map[string]string
	// Nodes and Pods are how many the whole cluster has: what its API server answers whoever asks for all of them.
	Nodes, Pods int
	// Notes are what was left out, a sentence each.
	Notes []string
}

// NodeType is what the nodes of an instance type have in common.
type NodeType struct {
	Type  string
	Nodes int
	Pods  int // that have an address of their own: on the node that has most of them
}

// mostTypes is how many instance types are played: each is one scenario more.
const mostTypes = 3

// poolSettings are those that a shape copies. With custom networking a node's ENIConfig is the one called default.
var poolSettings = []string{"WARM_ENI_TARGET", "WARM_IP_TARGET", "MINIMUM_IP_TARGET", "MAX_ENI", prefixDelegation, "WARM_PREFIX_TARGET", customNetworking}

const (
	prefixDelegation = "ENABLE_PREFIX_DELEGATION"
	customNetworking = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
)

// kubernetes' objects, as far as a shape is made of them.
type item struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName    string `json:"nodeName"`
		HostNetwork bool   `json:"hostNetwork"`
		Template    struct {
			Spec struct {
				Containers []struct {
					Env []struct{ Name, Value string } `json:"env"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// parseShape reads a list of nodes, pods and DaemonSets, as kubectl get nodes,pods,daemonsets -A -o json writes it.
func parseShape(data []byte) (*Shape, error) {
	var list struct {
		Kind  string `json:"kind"`
		Items []item `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil || list.Kind != "List" {
		return nil, errors.New("expected a List of nodes, pods and DaemonSets, as kubectl get nodes,pods,daemonsets -A -o json writes it")
	}
	s := &Shape{Settings: map[string]string{}}
	pods := map[string]int{}
	for _, i := range list.Items {
		switch i.Kind {
		case "Pod":
			s.Pods++
		case "Node":
			s.Nodes++
		}
		switch {
		case i.Kind == "Pod" && i.Spec.NodeName != "" && !i.Spec.HostNetwork && (i.Status.Phase == "Running" || i.Status.Phase == "Pending"):
			pods[i.Spec.NodeName]++
		case i.Kind == "DaemonSet" && i.Metadata.Name == "aws-node":
			for _, c := range i.Spec.Template.Spec.Containers {
				for _, e := range c.Env {
					if slices.Contains(poolSettings, e.Name) && e.Value != "" {
						s.Settings[e.Name] = e.Value
					}
				}
			}
		}
	}
	types := map[string]*NodeType{}
	for _, i := range list.Items {
		if i.Kind != "Node" {
			continue
		}
		t := cmp.Or(i.Metadata.Labels["node.kubernetes.io/instance-type"], i.Metadata.Labels["beta.kubernetes.io/instance-type"])
		if _, known := ec2.LimitsOf(t); !known {
			s.Notes = append(s.Notes, fmt.Sprintf("node %s is of a type that this laboratory does not know: %q", i.Metadata.Name, t))
			continue
		}
		if types[t] == nil {
			types[t] = &NodeType{Type: t}
		}
		types[t].Nodes++
		types[t].Pods = max(types[t].Pods, pods[i.Metadata.Name])
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		s.Types = append(s.Types, *types[name])
	}
	slices.SortStableFunc(s.Types, func(a, b NodeType) int { return b.Nodes - a.Nodes })
	if len(s.Types) == 0 {
		return nil, errors.New("there is no node of an instance type that this laboratory knows: " + strings.Join(append(s.Notes, "expected nodes with the label node.kubernetes.io/instance-type"), "; "))
	}
	if len(s.Types) > mostTypes {
		for _, t := range s.Types[mostTypes:] {
			s.Notes = append(s.Notes, fmt.Sprintf("nodes of type %s are not played: of %d types the %d of most nodes are", t.Type, len(s.Types), mostTypes))
		}
		s.Types = s.Types[:mostTypes]
	}
	for k, v := range s.Settings {
		d := ipam.Defaults()
		if err := d.Put(k, v); err != nil {
			return nil, fmt.Errorf("DaemonSet aws-node: %w", err)
		}
	}
	return s, nil
}

// The pods of Change beside those of workload web: it makes and ends so many, and its last expectations count them.
const (
	beside    = 3 + 4 + 3 // kept, fresh and late
	atOnce    = beside + 4
	webAtEnd  = 3 // more than at the begin
	fewestWeb = 3
	mostPods  = 110 // kubelet's
)

// Crowded is a scenario whose API server has as many nodes and pods as the cluster, beside its own, as far as a machine carries them.
func (s *Shape) Crowded(f *scn.File) *scn.File {
	g := f.Clone()
	for i := range g.Lines {
		c, ok := g.Lines[i].Stmt.(*scn.Cluster)
		if !ok {
			continue
		}
		c.Args = slices.DeleteFunc(c.Args, func(kv scn.KV) bool { return kv.Key == "other-nodes" || kv.Key == "other-pods" })
		c.Args = append(c.Args, scn.KV{Key: "other-nodes", Value: fmt.Sprint(min(s.Nodes, sim.MostOtherNodes))}, scn.KV{Key: "other-pods", Value: fmt.Sprint(min(s.Pods, sim.MostOtherPods))})
	}
	return g
}

// crowded is Crowded of a file's text.
func (s *Shape) crowded(name string, text []byte) ([]byte, error) {
	f, err := scn.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return []byte(s.Crowded(f).String()), nil
}

// change is Change, parsed.
func change() (*scn.File, error) {
	text, err := Files.ReadFile(Change)
	if err != nil {
		return nil, err
	}
	return scn.Parse(Change, text)
}

// sources are Change in the shape, a scenario for each type. name is the shape's file.
func (s *Shape) sources(name string) (out []source, err error) {
	f, err := change()
	if err != nil {
		return nil, err
	}
	for _, t := range s.Types {
		h, err := s.Shaped(f, t)
		if err != nil {
			return nil, invalid("--shape %s: %v", name, err)
		}
		out = append(out, source{name: "gate/change-" + t.Type + ".scn", data: []byte(h.String())})
	}
	slices.SortFunc(out, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// Shaped is Change on nodes of a type of a shape: as many pods, as far as the type carries what the scenario makes beside them.
func (s *Shape) Shaped(f *scn.File, t NodeType) (*scn.File, error) {
	limits, ok := ec2.LimitsOf(t.Type)
	if !ok {
		return nil, fmt.Errorf("unknown instance type %q", t.Type)
	}
	enis, each := limits.ENIs, limits.IPv4PerENI-1
	kind, _ := ec2.TypeOf(t.Type)
	prefixes, custom := s.Settings[prefixDelegation] == "true" && kind.Hypervisor != "xen", s.Settings[customNetworking] == "true"
	if prefixes {
		each *= 16
	}
	if custom {
		enis-- // the first one is not for pods
	}
	room := min(enis*each, mostPods) - atOnce
	web := max(fewestWeb, min(t.Pods-3, room))
	g := s.Crowded(f)
	for i := range g.Lines {
		switch stmt := g.Lines[i].Stmt.(type) {
		case *scn.Cluster:
			for j := range stmt.Args {
				switch stmt.Args[j].Key {
				case "type":
					stmt.Args[j].Value = t.Type
				case "subnet":
					stmt.Args[j].Value = "10.0.128.0/20"
				}
			}
			if prefixes {
				stmt.Args = append(stmt.Args, scn.KV{Key: "max-pods", Value: fmt.Sprint(mostPods)})
			}
			if custom {
				stmt.Args = append(stmt.Args, scn.KV{Key: "vpc", Value: "10.0.0.0/16,100.64.0.0/16"}, scn.KV{Key: "subnets", Value: "100.64.0.0/20"},
					scn.KV{Key: "eniconfigs", Value: "default:2"})
			}
		case *scn.Config:
			stmt.Args = nil
			for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
				stmt.Args = append(stmt.Args, scn.KV{Key: k, Value: s.Settings[k]})
			}
			if len(stmt.Args) == 0 {
				g.Lines[i] = scn.Line{Number: g.Lines[i].Number, Comment: "the cluster's settings are the defaults"}
			}
		case *scn.Start:
			if stmt.Name == "web" {
				stmt.Count = web
			}
		case *scn.At:
			if a := stmt.Action; a != nil && a.Verb == "scale" && len(a.Args) == 2 && a.Args[0].Value == "web" && a.Args[1].Value == "14" {
				a.Args[1].Value = fmt.Sprint(web + webAtEnd)
			}
			if a := stmt.Action; a != nil && a.Verb == "roll" && len(a.Args) == 2 && a.Args[0].Value == "web" {
				a.Args[1].Value = fmt.Sprint(max(1, web/2))
			}
			if c := stmt.Check; c != nil && c.Metric == "pods.ready" {
				c.Value = fmt.Sprint(web + webAtEnd + beside)
			}
		}
	}
	return g, nil
}
