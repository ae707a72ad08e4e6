package kube

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// clusterOf serves node-1 with such metadata, and ENIConfigs by name.
func clusterOf(metadata string, configs map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		name, of := strings.CutPrefix(q.URL.Path, configsPath)
		switch body, ok := configs[name]; {
		case q.URL.Path == "/api/v1/nodes/node-1":
			fmt.Fprintf(w, `{"kind":"Node","metadata":{"name":"node-1"%s}}`, metadata)
		case of && ok:
			_, _ = io.WriteString(w, body)
		default:
			text(http.StatusNotFound, `{"kind":"Status","code":404,"message":"not found"}`)(w, q)
		}
	}
}

func configObject(name, spec string) string {
	return fmt.Sprintf(`{"kind":"ENIConfig","apiVersion":"crd.k8s.amazonaws.com/v1alpha1","metadata":{"name":%q},"spec":%s}`, name, spec)
}

// The order is amazon-vpc-cni-k8s 1.23.0's (pkg/eniconfig/eniconfig.go, GetNodeSpecificENIConfigName): the label of somebody outside, the
// annotation, the label, "default". One that is there and empty counts.
func TestENIConfigOfNode(t *testing.T) {
	const (
		external   = `"vpc.amazonaws.com/externalEniConfig":"outside"`
		labelled   = `"k8s.amazonaws.com/eniConfig":"by-label"`
		annotated  = `,"annotations":{"k8s.amazonaws.com/eniConfig":"by-annotation"}`
		zone       = `"topology.kubernetes.io/zone":"eu-west-1a"`
		anotherKey = `,"annotations":{"example.com/config":"by-another"}`
	)
	labels := func(list ...string) string { return `,"labels":{` + strings.Join(list, ",") + `}` }
	configs := map[string]string{}
	for _, name := range []string{"outside", "by-label", "by-annotation", "by-another", "default", "eu-west-1a"} {
		configs[name] = configObject(name, fmt.Sprintf(`{"subnet":"subnet-%s","securityGroups":["sg-1","sg-2"]}`, name))
	}
	byZone, byAnother := ipam.Defaults(), ipam.Defaults()
	byZone.ConfigLabel, byAnother.ConfigAnnotation = "topology.kubernetes.io/zone", "example.com/config"
	for _, c := range []struct {
		name, metadata string
		set            ipam.Settings
		want           string
	}{
		{"all", labels(external, labelled, zone) + annotated, ipam.Defaults(), "outside"},
		{"annotation and label", labels(labelled) + annotated, ipam.Defaults(), "by-annotation"},
		{"label", labels(labelled, zone), ipam.Defaults(), "by-label"},
		{"none", labels(zone), ipam.Defaults(), "default"},
		{"nothing at all", "", ipam.Defaults(), "default"},
		{"the label that the setting names", labels(labelled, zone), byZone, "eu-west-1a"},
		{"the annotation that the setting names", labels(labelled) + anotherKey, byAnother, "by-another"},
		{"another annotation than the setting names", labels(labelled) + anotherKey, ipam.Defaults(), "by-label"},
	} {
		r := reader(t, serve(t, clusterOf(c.metadata, configs)).URL)
		got, err := r.ENIConfig(bounded(t, patience), &c.set)
		want := ipam.ENIConfig{Name: c.want, Subnet: "subnet-" + c.want, Groups: []string{"sg-1", "sg-2"}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, want)
		}
	}
}

// That there is none is an answer; what cannot be an ENIConfig's name is asked of nobody.
func TestENIConfigMissing(t *testing.T) {
	set := ipam.Defaults()
	for name, asks := range map[string]int{"zone-a": 2, "": 1, "../nodes/node-1": 1, "Zone": 1, strings.Repeat("a", 254): 1} {
		server := serve(t, clusterOf(fmt.Sprintf(`,"labels":{"vpc.amazonaws.com/externalEniConfig":%q}`, name), nil))
		got, err := reader(t, server.URL).ENIConfig(bounded(t, patience), &set)
		if err != nil || !got.Missing || got.Name != name || got.Subnet != "" {
			t.Errorf("%.10q: got %+v, %v", name, got, err)
		}
		if n := len(server.requests()); n != asks {
			t.Errorf("%.10q: %d requests, expected %d", name, n, asks)
		}
	}
}

// What the API server does not say is no answer: neither an absent ENIConfig nor an empty one.
func TestENIConfigUnsaid(t *testing.T) {
	set := ipam.Defaults()
	good := configObject("default", `{"subnet":"subnet-1"}`)
	for name, h := range map[string]http.HandlerFunc{
		"another kind":      clusterOf("", map[string]string{"default": `{"kind":"Status","metadata":{"name":"default"}}`}),
		"another name":      clusterOf("", map[string]string{"default": configObject("other", `{"subnet":"subnet-1"}`)}),
		"cut off":           clusterOf("", map[string]string{"default": good[:len(good)-3]}),
		"a list of a group": clusterOf("", map[string]string{"default": configObject("default", `{"subnet":"subnet-1","securityGroups":"sg-1"}`)}),
		"too large":         clusterOf("", map[string]string{"default": configObject("default", `{"subnet":"`+strings.Repeat("s", mostConfig)+`"}`)}),
		"no node":           text(http.StatusNotFound, `{"kind":"Status","code":404}`),
		"forbidden": func(w http.ResponseWriter, q *http.Request) {
			if strings.HasPrefix(q.URL.Path, configsPath) {
				text(http.StatusForbidden, `{"kind":"Status","code":403,"message":"eniconfigs is forbidden"}`)(w, q)
				return
			}
			clusterOf("", nil)(w, q)
		},
		"dropped": drop,
	} {
		if got, err := reader(t, serve(t, h).URL).ENIConfig(bounded(t, patience), &set); err == nil {
			t.Errorf("%s: got %+v, expected an error", name, got)
		}
	}
	silent := serve(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	if got, err := readerFor(t, silent.URL, 50*time.Millisecond).ENIConfig(t.Context(), &set); err == nil {
		t.Errorf("silent: got %+v, expected an error", got)
	}
}
