package netns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/systems"
)

// Exchange has another system's daemon, plugin or both run, in the order that its description says. What the daemon installs of its own plugin or
// conflist gives way again where another one's was wanted.
func (n *instance) Exchange(to, part string, keep bool) bool {
	w, next := n.w, n.w.parts.others[to]
	old := n.system
	if next == nil || (part == "plugin" || sameVersion(next, old)) && (part == "daemon" || sameVersion(next, n.plugin)) {
		return false
	}
	if part != "daemon" {
		n.plugin = next
	}
	if part == "plugin" {
		n.beside([]systems.Step{stepTheirs}, nil)
		return true
	}
	n.was = old
	n.system = next
	if keep {
		n.system = next.WithManifest(old)
	}
	order := next.Upgrade.Steps
	if next.Upgrade.Rollback != nil && next.Name == old.Name && semver.Compare("v"+next.Version, "v"+old.Version) < 0 {
		order = next.Upgrade.Rollback
	}
	first := n.plan(order)
	n.before = n.before[len(first):]
	if part == "daemon" {
		apart := func(s systems.Step) bool { return slices.Contains(runtimeSteps, s) }
		first, n.before, n.after = slices.DeleteFunc(first, apart), slices.DeleteFunc(n.before, apart), append(slices.DeleteFunc(n.after, apart), stepTheirs)
	}
	n.failures = 0
	n.beside(first, func() {
		switch {
		case n.Gone:
		case n.Runs():
			n.Restart()
		case n.Lives():
			n.kill()
		}
		w.fail(n.listenCRI())
	})
	return true
}

// Learn makes a system known, under the name that lines call it by, to a world that already runs. Its files are in
// Parts.Later, or a folder that was there when the world was opened.
func Learn(w *World, name string, s *systems.System) error {
	w.parts.others[name] = s
	for n := range w.nodes.living() {
		if s.Folder != w.parts.Later {
			continue
		}
		if err := n.box.Link(folderOf(s), laterFolder); err != nil {
			return fmt.Errorf("%s: the files of %s: %w", n.Name(), name, err)
		}
	}
	return nil
}

func sameVersion(a, b *systems.System) bool { return a.Name == b.Name && a.Version == b.Version }

// settingsOf are the settings that a scenario's lines have written for a node, by their upstream names. One that is our
// default is written too: amazon-vpc-cni-k8s without WARM_PREFIX_TARGET=1 refuses to start with prefixes.
func settingsOf(n *models.Node) map[string]string {
	all, out := actions.Environment(&n.Settings), map[string]string{}
	for _, k := range n.Written {
		out[k] = all[k]
	}
	return out
}

// words are what the placeholders of descriptions stand for on a node.
func (n *instance) words() systems.Words {
	w := n.w
	in, _ := w.EC2.InstanceOf(n.Instance)
	socket := n.system.Runtime.Socket
	words := systems.Words{"NODE": n.Name(), "ADDRESS": in.PrimaryAddress.String(), "POD": n.self, "NAMESPACE": "kube-system", "CLUSTER": w.Cluster.Name,
		"REGION": region, "EC2_URL": "http://" + ec2Addr, "METADATA_URL": "http://" + imdsAddr, "KUBERNETES_URL": "http://" + kubeAddr,
		"KUBERNETES_HOST": kubeHost, "KUBERNETES_PORT": kubePort, "KUBECONFIG": kubeconfigPath, "RUNTIME_SOCKET": socket, "DOCKER_HOST": dockerHost(socket),
		"CA": authorityPath, "VPC_CIDR": w.Cluster.VPC.String()}
	if ranges := n.podRanges(); len(ranges) > 0 {
		words["POD_RANGE"] = ranges[0].String()
		subnets := make([]string, len(ranges))
		for i, r := range ranges {
			subnets[i] = fmt.Sprintf(`{"subnet": %q}`, r)
		}
		words["POD_RANGES"] = "[" + strings.Join(subnets, ", ") + "]"
	}
	return words
}

// podRanges are the prefixes of a node's first ENI.
func (n *instance) podRanges() []netip.Prefix {
	for _, id := range n.w.EC2.AttachedENIs(n.Instance) {
		if e, _ := n.w.EC2.ENI(id); e.MAC == n.mac {
			return e.Prefixes
		}
	}
	return nil
}

// dockerHost is a socket as DOCKER_HOST names it.
func dockerHost(socket string) string {
	switch {
	case strings.Contains(socket, "://"):
		return socket
	case strings.HasPrefix(socket, "/"):
		return "unix://" + socket
	}
	return "tcp://" + socket
}

func (n *instance) installer(words systems.Words, settings map[string]string) *installer {
	return &installer{n.box, n.system, n.plugin, words, settings, rootOf(n.system, n.w.around)}
}

// beside does steps beside the loop; then is called in it.
func (n *instance) beside(steps []systems.Step, then func()) {
	if len(steps) == 0 {
		if then != nil {
			then()
		}
		return
	}
	w := n.w
	work := n.installer(n.words(), settingsOf(&n.Node))
	n.asides++
	go func() {
		err := work.do(w.ctx, steps)
		w.mail.Post(func() {
			n.asides--
			if err != nil && !n.Gone {
				w.fail(fmt.Errorf("%s: %w", n.Name(), err))
			}
			if then != nil {
				then()
			}
		})
	}()
}
