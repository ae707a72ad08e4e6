package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// origins are who may have made amazon-vpc-cni-k8s's objects: server-side apply keeps for each field who set it, and how.
var origins = []string{"eks", "helm", "kubectl"}

// cluster are objects as an API server keeps them, with the owners of their fields.
type cluster map[string]managedfieldstest.TestFieldManager

func key(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

func (c cluster) manager(u *unstructured.Unstructured) managedfieldstest.TestFieldManager {
	if c[key(u)] == nil {
		c[key(u)] = managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), u.GroupVersionKind())
	}
	return c[key(u)]
}

func (c cluster) live(k string) *unstructured.Unstructured {
	if c[k] == nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	switch o := c[k].Live().(type) {
	case *unstructured.Unstructured:
		u.Object = o.DeepCopy().Object
	default:
		u.Object, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	}
	u.SetManagedFields(nil)
	return u
}

func documents(t *testing.T, text []byte) (out []*unstructured.Unstructured) {
	t.Helper()
	for d := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		must.Do(t, yaml.Unmarshal([]byte(d), &u.Object))
		out = append(out, u)
	}
	return out
}

// upstream are amazon-vpc-cni-k8s's objects, as something made them.
func upstream(t *testing.T, origin string, change func(*unstructured.Unstructured)) cluster {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "upstream.yaml"))
	must.Do(t, err)
	c := cluster{}
	for _, u := range documents(t, text) {
		if change != nil {
			change(u)
		}
		switch origin {
		case "eks": // the add-on applies
			err = c.manager(u).Apply(u, "eks", true)
		case "helm": // before its version 4
			err = c.manager(u).Update(u, "helm")
		case "kubectl":
			u.SetAnnotations(merged(u.GetAnnotations(), map[string]string{corev1.LastAppliedConfigAnnotation: "{\"kind\": \"" + u.GetKind() + "\"}"}))
			err = c.manager(u).Update(u, "kubectl-client-side-apply")
		}
		must.Do(t, err)
	}
	return c
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// apply is kubectl apply --server-side --force-conflicts --field-manager=enilab, which after it has applied takes over the fields of who used
// kubectl apply before, and applies again.
func (c cluster) apply(t *testing.T, text []byte) {
	t.Helper()
	const who = "enilab"
	annotation := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation))
	for _, u := range documents(t, text) {
		m := c.manager(u)
		if err := m.Apply(u.DeepCopy(), who, true); err != nil {
			t.Fatalf("%s: %v", key(u), err)
		}
		names := sets.New[string]()
		for _, e := range csaupgrade.FindFieldsOwners(m.ManagedFields(), metav1.ManagedFieldsOperationUpdate, annotation) {
			names.Insert(e.Manager)
		}
		if len(names) == 0 {
			continue
		}
		live := m.Live()
		must.Do(t, errors.Join(csaupgrade.UpgradeManagedFields(live, names, who), m.Update(live, who)))
		if err := m.Apply(u.DeepCopy(), who, true); err != nil {
			t.Fatalf("%s: %v", key(u), err)
		}
	}
}

// flat are the leaves of an object, named as server-side apply tells the elements of lists apart.
func flat(at string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			flat(at+"."+k, e, out)
		}
	case []any:
		for _, e := range v {
			m, ok := e.(map[string]any)
			k := ""
			for _, name := range []string{"mountPath", "containerPort", "name"} {
				if id, is := m[name]; ok && is && k == "" {
					k = fmt.Sprint(id)
				}
			}
			if k == "" {
				text, _ := json.Marshal(v)
				out[at] = string(text)
				return
			}
			flat(at+"["+k+"]", e, out)
		}
	default:
		out[at] = fmt.Sprint(v)
	}
}

func leaves(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	flat("", u.Object, out)
	return out
}

// taken is what of their objects is other than they said, once ours are applied over them. It is what makes theirs ours, and nothing else.
var taken = []string{
	".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration", // of kubectl's alone
	".spec.template.spec.containers[aws-node].image",
	".spec.template.spec.containers[aws-node].imagePullPolicy",
	".spec.template.spec.containers[aws-node].livenessProbe.exec.command",
	".spec.template.spec.containers[aws-node].readinessProbe.exec.command",
	".spec.template.spec.initContainers[aws-vpc-cni-init].image",
	".spec.template.spec.initContainers[aws-vpc-cni-init].imagePullPolicy",
	".spec.template.spec.initContainers[aws-vpc-cni-init].securityContext.privileged",
}

// TestOverUpstream: applied over amazon-vpc-cni-k8s's objects, whoever made them, ours take nothing that is shared: no rule of its role,
// no setting of the operator's, no container, volume, mount or label; and a second time nothing changes.
func TestOverUpstream(t *testing.T) {
	for _, origin := range origins {
		c := upstream(t, origin, nil)
		before := map[string]map[string]string{}
		for k := range c {
			before[k] = leaves(c.live(k))
		}
		text := manifests(t, Options{})
		c.apply(t, text)
		for _, k := range slices.Sorted(maps.Keys(before)) {
			after := leaves(c.live(k))
			for _, path := range slices.Sorted(maps.Keys(before[k])) {
				if now, ok := after[path]; (!ok || now != before[k][path]) && !slices.Contains(taken, path) {
					t.Errorf("made by %s: %s%s was %q and is %q", origin, k, path, before[k][path], now)
				}
			}
		}
		once := leaves(c.live("DaemonSet aws-node"))
		c.apply(t, text)
		if !maps.Equal(once, leaves(c.live("DaemonSet aws-node"))) {
			t.Errorf("made by %s: applied again, the DaemonSet changes", origin)
		}
	}
}

// TestOverUpstreamRuns: what has become of their pods is ours where it has to be, and the daemon reads the operator's settings: it refuses what
// it cannot do (prefixes) in words, and does not go on as if it had not been asked.
func TestOverUpstreamRuns(t *testing.T) {
	c := upstream(t, "eks", nil)
	c.apply(t, manifests(t, Options{Env: map[string]string{"IP_COOLDOWN_PERIOD": "60"}}))
	var set appsv1.DaemonSet
	must.Do(t, runtime.DefaultUnstructuredConverter.FromUnstructured(c.live("DaemonSet aws-node").Object, &set))
	ours := daemonSet(t, Options{}).Spec.Template.Spec
	pod := set.Spec.Template.Spec
	daemon := pod.Containers[slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name })]
	for _, pair := range [][2]corev1.Container{{pod.InitContainers[0], ours.InitContainers[0]}, {daemon, ours.Containers[0]}} {
		have, want := pair[0], pair[1]
		if have.Image != want.Image || !slices.Equal(have.Command, want.Command) || len(have.Args) > 0 || *have.SecurityContext.Privileged {
			t.Errorf("%s is not ours: %+v", have.Name, have)
		}
	}
	env := map[string]string{}
	for _, e := range daemon.Env {
		env[e.Name] = e.Value
	}
	s, problems := settings.Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if s.IPAM.WarmENITarget != 3 || s.IPAM.MTU != 1500 || !s.IPAM.ExternalSNAT || s.Cluster != "production" || s.IPAM.CoolDown.Seconds() != 60 {
		t.Errorf("the operator's settings are not the daemon's: %+v", s)
	}
	var stops []string
	for _, p := range problems {
		if p.Stops {
			stops = append(stops, p.Variable)
		}
	}
	if len(stops) > 0 || !s.IPAM.PrefixDelegation || s.IPAM.WarmPrefixTarget != 1 {
		t.Errorf("%v stop the daemon, and it has %+v: expected prefixes, and none that stops it", stops, s.IPAM)
	}
}

// TestAPIServerTakesThem: an API server's own code takes our objects, alone and over amazon-vpc-cni-k8s's, of today and of the years when its
// daemon was privileged too; and it refuses the contradiction that there was once, so it does look.
func TestAPIServerTakesThem(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a part of k8s.io/kubernetes")
	}
	binary := filepath.Join(t.TempDir(), "validate")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "validate"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build validate: %v\n%s", err, out)
	}
	privileged := func(u *unstructured.Unstructured) {
		if u.GetKind() == "DaemonSet" {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			_ = unstructured.SetNestedField(containers[0].(map[string]any), true, "securityContext", "privileged")
			_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		}
	}
	unsaid := bytes.ReplaceAll(manifests(t, Options{}), []byte("          privileged: false\n"), nil)
	cases := map[string]string{}
	try := func(name string, c cluster, text []byte) {
		t.Helper()
		type pair struct {
			Old any `json:"old"`
			New any `json:"new"`
		}
		var pairs []pair
		old := map[string]*unstructured.Unstructured{}
		for k := range c {
			old[k] = c.live(k)
		}
		c.apply(t, text)
		for _, k := range slices.Sorted(maps.Keys(c)) {
			p := pair{New: c.live(k).Object}
			if old[k] != nil {
				p.Old = old[k].Object
			}
			pairs = append(pairs, p)
		}
		in := must.Get(json.Marshal(pairs))(t)
		run := exec.Command(binary)
		run.Stdin = bytes.NewReader(in)
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		cases[name] = string(out)
	}
	for _, origin := range origins {
		try("made by "+origin, upstream(t, origin, nil), manifests(t, Options{}))
	}
	try("alone", cluster{}, manifests(t, Options{}))
	try("over a privileged daemon", upstream(t, "eks", privileged), manifests(t, Options{}))
	for name, out := range cases {
		if out != "" {
			t.Errorf("%s: an API server refuses:\n%s", name, out)
		}
	}
	try("privileged unsaid", upstream(t, "eks", nil), unsaid)
	if out := cases["privileged unsaid"]; !strings.Contains(out, "allowPrivilegeEscalation") {
		t.Errorf("expected a refusal of a privileged container without privilege escalation, found %q", out)
	}
}
