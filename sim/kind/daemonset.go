package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/verb"
)

// The daemon's DaemonSet.
const (
	systemNamespace = "kube-system"
	daemonSet       = "aws-node"
	daemonSelector  = "k8s-app=aws-node"
)

// daemonTemplate is what the DaemonSet makes a daemon of. It has one for all nodes, and replaces no daemon by itself
// (OnDelete): where nodes differ, each is rolled with its own, while the others' daemons run on as they were made.
type daemonTemplate struct {
	version     int    // of records and local protocol
	environment string // as JSON, whose keys are sorted
}

// daemons are what the DaemonSet makes.
type daemons struct {
	w    *World
	made daemonTemplate // what it makes them of now
}

// templateOf is a node's.
func (s *daemons) templateOf(m *member) daemonTemplate {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	env, err := json.Marshal(environment(&m.set))
	s.w.failed(err)
	return daemonTemplate{m.version, string(env)}
}

// environment is a daemon's, but for what all clusters have in common.
func environment(s *ipam.Settings) map[string]string {
	env := actions.Environment(s)
	env["ENILAB_RUNTIME_SOCKET"] = criSocket
	return env
}

// command is a daemon's, of a version of ours.
func (s *daemons) command(version int) []string {
	command := []string{"/ipamd"}
	if m := s.w.witness.Mutant; m != nil {
		command = []string{"/enilab", "play", m.Name}
	}
	return append(command, "--clock", "unix:"+clockSocket, "--record", "unix:"+recordSocket,
		"--record-version", strconv.Itoa(version))
}

// roll ends the daemons of some nodes; their DaemonSet makes new ones, as their nodes have them now.
func (s *daemons) roll(list []*member) error {
	for _, m := range list {
		if err := s.applyTemplate(m); err != nil {
			return err
		}
		m.tell("ipamd is told to end")
		end := func(ctx context.Context) error { return s.deleteDaemon(ctx, m, false) }
		if err := s.w.persist("the API server", end); err != nil {
			return err
		}
	}
	return nil
}

// restartAll gives all nodes' daemons settings: where they have the same ones, all are told to end at once.
func (s *daemons) restartAll(a *verb.Act, parts []int) error {
	for _, m := range s.w.members.living() {
		s.w.took(parts[m.no], (&deed{w: s.w, m: m, id: parts[m.no]}).awaits())
		m.configure(a.Keys)
	}
	return s.roll(s.w.members.living())
}

// applyTemplate has the DaemonSet make a node's daemon from now on. Those that it makes of another template come first.
func (s *daemons) applyTemplate(m *member) error {
	want := s.templateOf(m)
	if want == s.made {
		return nil
	}
	if err := s.w.persist("the daemons that are to start", s.allMade); err != nil {
		return err
	}
	if err := s.w.persist("the API server", func(ctx context.Context) error { return s.set(ctx, want) }); err != nil {
		return err
	}
	s.made = want
	return nil
}

// allMade says that every node that shall have a daemon has the pod of one, which is not about to end.
func (s *daemons) allMade(ctx context.Context) error {
	pods := s.w.c.Client().CoreV1().Pods(systemNamespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: daemonSelector})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			has[p.Spec.NodeName] = true
		}
	}
	for _, m := range s.w.members.living() {
		if !m.held && !has[m.node.Name] {
			return fmt.Errorf("%s has none yet", m.name())
		}
	}
	return nil
}

// set changes the template of the DaemonSet, and waits until its controller knows: what it makes from then on is of it.
func (s *daemons) set(ctx context.Context, t daemonTemplate) error {
	client := s.w.c.Client().AppsV1().DaemonSets(systemNamespace)
	d, err := client.Get(ctx, daemonSet, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch, err := templatePatch(d, t, s.command(t.version))
	if err != nil {
		return err
	}
	if d, err = client.Patch(ctx, daemonSet, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	wanted := d.Generation
	return s.w.c.Await(ctx, "the DaemonSet's controller to see the new template", func() (string, error) {
		d, err := client.Get(ctx, daemonSet, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration >= wanted {
			return "", err
		}
		return "it has not", nil
	})
}

// templatePatch sets variables of all containers, for the init step decides by the same settings, and the daemon's
// command.
func templatePatch(d *appsv1.DaemonSet, t daemonTemplate, command []string) ([]byte, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type container struct {
		Name    string     `json:"name"`
		Command []string   `json:"command,omitempty"`
		Env     []variable `json:"env"`
	}
	values := map[string]string{}
	if err := json.Unmarshal([]byte(t.environment), &values); err != nil {
		return nil, err
	}
	var env []variable
	for _, key := range slices.Sorted(maps.Keys(values)) {
		env = append(env, variable{key, values[key]})
	}
	spec := map[string][]container{}
	for _, c := range d.Spec.Template.Spec.InitContainers {
		spec["initContainers"] = append(spec["initContainers"], container{Name: c.Name, Env: env})
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		spec["containers"] = append(spec["containers"], container{Name: c.Name, Command: command, Env: env})
	}
	return json.Marshal(map[string]any{"spec": map[string]any{
		"updateStrategy": map[string]any{"type": appsv1.OnDeleteDaemonSetStrategyType, "rollingUpdate": nil},
		"template":       map[string]any{"spec": spec}}})
}

// deleteDaemon deletes a node's daemon, gracefully or by force.
func (s *daemons) deleteDaemon(ctx context.Context, m *member, force bool) error {
	client := s.w.c.Client().CoreV1().Pods(systemNamespace)
	of := metav1.ListOptions{LabelSelector: daemonSelector, FieldSelector: "spec.nodeName=" + m.node.Name}
	list, err := client.List(ctx, of)
	if err != nil {
		return err
	}
	var o metav1.DeleteOptions
	if force {
		o.GracePeriodSeconds = new(int64)
	}
	for i := range list.Items {
		if err := client.Delete(ctx, list.Items[i].Name, o); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// without is a label that the DaemonSet's affinity leaves out: the node says that its network is built in.
const (
	without      = "eks.amazonaws.com/compute-type"
	withoutValue = "auto"
)

// keepDown keeps a node's daemon down: its DaemonSet leaves the node out, and what runs is killed.
func (s *daemons) keepDown(m *member) error {
	m.held = true
	if err := s.label(m, fmt.Sprintf("%q", withoutValue)); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	m.kill()
	return nil
}

// letUp ends that.
func (s *daemons) letUp(m *member) error {
	if !m.held {
		return nil
	}
	if err := s.applyTemplate(m); err != nil {
		return err
	}
	m.held = false
	return s.label(m, "null")
}

func (s *daemons) label(m *member, value string) error {
	patch := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, without, value))
	return s.w.persist("the API server", func(ctx context.Context) error {
		_, err := s.w.c.Client().CoreV1().Nodes().Patch(ctx, m.node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}
