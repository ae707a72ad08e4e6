package deploy

import (
	"bytes"
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

var update = flag.Bool("update", false, "rewrite aws-node.yaml")

const committed = "aws-node.yaml"

// TestCommitted: what people apply is what Manifests gives.
func TestCommitted(t *testing.T) {
	want := manifests(t, Options{})
	if *update {
		must.Do(t, os.WriteFile(committed, want, 0o644))
	}
	have := must.Get(os.ReadFile(committed))(t)
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what Manifests gives: go generate ./impl/deploy", committed)
	}
}

func manifests(t *testing.T, o Options) []byte {
	t.Helper()
	return must.Get(Manifests(o))(t)
}

// TestManifestsAreTheObjects: each document reads strictly as its type, and is the object that it was made of.
func TestManifestsAreTheObjects(t *testing.T) {
	for _, o := range []Options{{}, {Image: "a.example/b@sha256:00", Namespace: "cni", Env: map[string]string{"MAX_ENI": "3", "A": "yes: \"no\"\n"}, ExtraVolumes: []string{"/run/other"}}} {
		objects := must.Get(Objects(o))(t)
		documents := strings.Split(string(manifests(t, o)), "\n---\n")
		into := []runtime.Object{&corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &appsv1.DaemonSet{}}
		if len(documents) != len(into) || len(objects) != len(into) {
			t.Fatalf("expected %d documents, found %d of %d objects", len(into), len(documents), len(objects))
		}
		for i := range into {
			if err := yaml.UnmarshalStrict([]byte(documents[i]), into[i]); err != nil {
				t.Fatalf("document %d: %v", i, err)
			}
			if !equality.Semantic.DeepEqual(into[i], objects[i]) {
				t.Errorf("document %d is another %T than the one it was made of:\n%s", i, objects[i], documents[i])
			}
		}
		for range 20 {
			if again := manifests(t, o); string(again) != strings.Join(documents, "\n---\n") {
				t.Fatal("the same options gave other bytes")
			}
		}
	}
}

func daemonSet(t *testing.T, o Options) *appsv1.DaemonSet {
	t.Helper()
	objects := must.Get(Objects(o))(t)
	return objects[len(objects)-1].(*appsv1.DaemonSet)
}

// TestPrivileges: nothing but what is named here.
func TestPrivileges(t *testing.T) {
	pod := daemonSet(t, Options{}).Spec.Template.Spec
	if pod.HostPID || pod.HostIPC || !pod.HostNetwork || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("host namespaces or seccomp: %+v", pod)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, s)
		}
		want := map[string][]corev1.Capability{"aws-vpc-cni-init": {"NET_ADMIN"}, "aws-node": {"NET_ADMIN", "NET_RAW"}}[c.Name]
		if want == nil || !slices.Equal(s.Capabilities.Add, want) {
			t.Errorf("%s has capabilities %v, expected %v", c.Name, s.Capabilities.Add, want)
		}
	}
}

// TestEveryVolumeIsMounted: each is mounted, each mount has one, and only the init container sees the folder of
// programs that the runtime runs as root.
func TestEveryVolumeIsMounted(t *testing.T) {
	pod := daemonSet(t, Options{ExtraVolumes: []string{"/run/other"}}).Spec.Template.Spec
	volumes := map[string]string{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.HostPath.Path
	}
	have := map[string]string{} // where the containers see what
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			have[c.Name+" "+m.MountPath] = volumes[m.Name]
			if (m.Name == "runtime-dir") != m.ReadOnly {
				t.Errorf("%s: read-only is %v", m.Name, m.ReadOnly)
			}
		}
	}
	want := map[string]string{ // one is in both
		"aws-vpc-cni-init /host/opt/cni/bin":    "/opt/cni/bin",
		"aws-vpc-cni-init /var/run/aws-node":    "/var/run/aws-node",
		"aws-node /host/etc/cni/net.d":          "/etc/cni/net.d",
		"aws-node /host/var/log/aws-routed-eni": "/var/log/aws-routed-eni",
		"aws-node /var/run/aws-node":            "/var/run/aws-node",
		"aws-node /var/lib/aws-node":            "/var/lib/aws-node",
		"aws-node /run/containerd":              "/run/containerd",
		"aws-node /run/other":                   "/run/other",
	}
	if len(volumes) != len(want)-1 || !equality.Semantic.DeepEqual(have, want) {
		t.Errorf("%d volumes, mounted as %v, expected %v", len(volumes), have, want)
	}
	for _, m := range daemonSet(t, Options{Env: map[string]string{"ENILAB_RUNTIME_SOCKET": "none"}}).Spec.Template.Spec.Containers[0].VolumeMounts {
		if m.Name == "runtime-dir" {
			t.Error("without a runtime's socket its folder is mounted")
		}
	}
}

// TestSettings: unless somebody asks for something, nothing is said but who the pod is, which overwrites no operator's setting; and what the
// daemon does with that is what it does without.
func TestSettings(t *testing.T) {
	s, problems, err := Settings(Options{})
	must.Do(t, err)
	if len(problems) > 0 || s.IPAM != ipam.Defaults() {
		t.Errorf("problems %v, settings %+v; expected none, and the defaults", problems, s.IPAM)
	}
	pod := daemonSet(t, Options{}).Spec.Template.Spec
	for _, e := range pod.Containers[0].Env {
		if e.Value != "" || e.ValueFrom == nil {
			t.Errorf("%s=%s is said although nobody asked for it", e.Name, e.Value)
		}
	}
	if !equality.Semantic.DeepEqual(pod.Containers[0].Env, pod.InitContainers[0].Env) {
		t.Error("init and daemon decide by two environments")
	}
	if s.Node != "spec.nodeName" || s.Pod != "metadata.name" || s.PodNamespace != "metadata.namespace" {
		t.Errorf("the pod does not know itself: %q %q %q", s.Node, s.Pod, s.PodNamespace)
	}
}

// TestEveryPathSettingIsInAVolume: whatever setting is a path is in a volume, or is named here with the reason why
// not.
func TestEveryPathSettingIsInAVolume(t *testing.T) {
	elsewhere := map[string]string{
		"AWS_VPC_K8S_PLUGIN_LOG_FILE": "the plugin runs on the host",
		"ENILAB_PLUGIN_DIR":           "it is in the image",

		"AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": "there is no such plugin",
		"AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE": "there is no such plugin",
	}
	s, _, err := Settings(Options{})
	must.Do(t, err)
	for _, v := range s.Values {
		if path.IsAbs(v.Value) && elsewhere[v.Name] == "" && !slices.Contains(slices.Concat(daemonPaths, initPaths), v.Name) {
			t.Errorf("%s is the path %s: nobody says which container has it in a volume", v.Name, v.Value)
		}
	}
	for _, name := range slices.Concat(daemonPaths, initPaths) {
		if _, err := Manifests(Options{Env: map[string]string{name: "/srv/elsewhere"}}); err == nil || !strings.Contains(err.Error(), name+"=/srv/elsewhere") {
			t.Errorf("%s in no volume: %v", name, err)
		}
	}
	two := Options{RuntimeDir: "/run/crio", Env: map[string]string{"ENILAB_RUNTIME_SOCKET": "unix:///run/crio/crio.sock", "ENILAB_LIB_DIR": "/srv/a/b"}, ExtraVolumes: []string{"/srv/a"}}
	manifests(t, two)
}

// TestOptionsAreInTheManifest: what is set is there.
func TestOptionsAreInTheManifest(t *testing.T) {
	set := daemonSet(t, Options{Image: "a/b:c", PullPolicy: "Never", Command: []string{"/enilab", "play", "x"}, Namespace: "n",
		Env: map[string]string{"WARM_ENI_TARGET": "2", "AWS_REGION": "r", "MY_NODE_NAME": "fixed"}})
	pod := set.Spec.Template.Spec
	daemon, init := pod.Containers[0], pod.InitContainers[0]
	if set.Namespace != "n" || daemon.Image != "a/b:c" || init.Image != "a/b:c" || daemon.ImagePullPolicy != "Never" || init.ImagePullPolicy != "Never" {
		t.Errorf("%+v", set)
	}
	if !slices.Equal(daemon.Command, []string{"/enilab", "play", "x"}) || init.Command[0] != "/ipamd" || daemon.LivenessProbe.Exec.Command[0] != "/ipamd" {
		t.Errorf("commands: %v, %v, %v", daemon.Command, init.Command, daemon.LivenessProbe.Exec.Command)
	}
	env := map[string]corev1.EnvVar{}
	for _, e := range daemon.Env {
		if _, twice := env[e.Name]; twice {
			t.Errorf("%s is there twice", e.Name)
		}
		env[e.Name] = e
	}
	if env["WARM_ENI_TARGET"].Value != "2" || env["AWS_REGION"].Value != "r" || env["MY_NODE_NAME"].Value != "fixed" || env["MY_NODE_NAME"].ValueFrom != nil {
		t.Errorf("%v", env)
	}
	if !slices.IsSortedFunc(daemon.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the environment is not sorted")
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		`image is "a b"`:         {Image: "a b"},
		`policy is "Sometimes"`:  {PullPolicy: "Sometimes"},
		`empty word`:             {Command: []string{"/ipamd", ""}},
		`"A=B" is no name`:       {Env: map[string]string{"A=B": ""}},
		`"" is no name`:          {Env: map[string]string{"": ""}},
		`folder is "run"`:        {RuntimeDir: "run"},
		`folder is "/"`:          {RuntimeDir: "/"},
		`volume is "/a/../b"`:    {ExtraVolumes: []string{"/a/../b"}},
		`mounted at /run/x`:      {ExtraVolumes: []string{"/run/x", "/run/x"}},
		`ENILAB_RUNTIME_SOCKET=`: {RuntimeDir: "/run/crio"},
	} {
		if _, err := Manifests(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("expected one sentence with %q, found %v", want, err)
		}
	}
	if _, _, err := Settings(Options{PullPolicy: "x"}); err == nil {
		t.Error("settings of options that cannot be")
	}
}

// TestKubeletWaitsLongerThanTheDaemonTakes: kubelet waits longer for the daemon than the daemon takes.
func TestKubeletWaitsLongerThanTheDaemonTakes(t *testing.T) {
	pod := daemonSet(t, Options{}).Spec.Template.Spec
	if bound := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; bound <= daemon.StopBound {
		t.Errorf("kubelet kills after %v, the daemon may take %v", bound, daemon.StopBound)
	}
}

// TestProbesAreTheDaemonsCommands: what kubelet runs is what the daemon's command line knows; a daemon that is not
// there is neither ready nor alive.
func TestProbesAreTheDaemonsCommands(t *testing.T) {
	c := daemonSet(t, Options{}).Spec.Template.Spec.Containers[0]
	t.Setenv("ENILAB_SOCKET", filepath.Join(t.TempDir(), "ipamd.sock"))
	t.Setenv("ENILAB_RIVAL", "none")
	for _, p := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		const usage, failed = 2, 1
		if code := daemon.Main(p.Exec.Command[1:], daemon.Parts{}); code != failed {
			t.Errorf("%v: exit code %d, expected %d (%d: it is no command)", p.Exec.Command, code, failed, usage)
		}
		if p.TimeoutSeconds < 5 {
			t.Errorf("%v: timeout %d s", p.Exec.Command, p.TimeoutSeconds)
		}
	}
	if slices.Equal(c.ReadinessProbe.Exec.Command, c.LivenessProbe.Exec.Command) {
		t.Error("a daemon that is not ready would be killed")
	}
}

// TestSelector: it is EKS's, and selects the pods.
func TestSelector(t *testing.T) {
	set := daemonSet(t, Options{})
	if !equality.Semantic.DeepEqual(set.Spec.Selector.MatchLabels, map[string]string{"k8s-app": "aws-node"}) || set.Spec.Template.Labels["k8s-app"] != "aws-node" {
		t.Errorf("selector %v, labels %v", set.Spec.Selector, set.Spec.Template.Labels)
	}
}
