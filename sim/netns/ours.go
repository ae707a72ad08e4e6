package netns

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	kubeserver "github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/netns/node"
)

// ours keeps our own daemons, or mutants of them: the laboratory tells them the time, and they stream their recordings.
type ours struct{ w *World }

var _ keeper = ours{}

// spec is a node with our daemon's and plugin's binaries where production has them.
func (o ours) spec(n *instance) node.Spec {
	w := o.w
	argv := []string{w.parts.Ipamd}
	if w.mutant != nil {
		argv = append(slices.Clone(w.parts.Play), w.mutant.Name)
	}
	files := map[string]string{ipamdPath: w.parts.Ipamd}
	maps.Copy(files, w.parts.Files)
	return node.Spec{Name: n.Name(), Self: w.parts.Self, Daemon: argv, Plugin: w.parts.Plugin, Capabilities: w.parts.Capabilities,
		Conflist: n.conflist(), Files: files, Slowness: slowness()}
}

// listen opens the sockets of the clock and of recordings.
func (o ours) listen(n *instance) error {
	if err := n.accept(clockSocket, n.takeClock); err != nil {
		return err
	}
	return n.accept(recordSocket, n.takeRecording)
}

// kubernetes is a server for our client, which reads its own node's pods.
func (ours) kubernetes(n *instance) *http.Server {
	return kubeserver.Server(kubeserver.Handler(kubeBackend{&backend{n}}))
}

// runtime is asked where production has it.
func (ours) runtime(*instance) (api, socket string) { return "cri", criSocket }

func (ours) installed(n *instance) error {
	return n.box.WriteFile(node.ConfDir+"/10-aws.conflist", n.conflist())
}

// ipamdPath is where a node has the daemon's binary for its init step.
const ipamdPath = "/opt/enilab/ipamd"

// conflist is the network configuration for a plugin of the node's version.
func (n *instance) conflist() []byte {
	return conflist.Make(conflist.Options{VethPrefix: n.Settings.VethPrefix, MTU: n.Settings.MTU, LocalProtocol: n.Plugin})
}

// environment is the daemon's: the cluster's name, the node's settings by their upstream names, and where it finds everybody.
func (n *instance) environment(cluster string) map[string]string {
	env := actions.Environment(&n.Settings)
	maps.Copy(env, map[string]string{
		"CLUSTER_NAME":          cluster,
		"MY_NODE_NAME":          n.Name(),
		"MY_POD_NAME":           n.self,
		"MY_POD_NAMESPACE":      "kube-system",
		"AWS_REGION":            "us-west-2",
		"AWS_ENDPOINT_URL_EC2":  "http://" + ec2Addr,
		"CLUSTER_ENDPOINT":      "http://" + kubeAddr,
		"ENILAB_RUNTIME_SOCKET": criSocket,
		"HOST_CNI_BIN_PATH":     "none", // the plugin is mounted, and the conflist says the version that it plays
		"HOST_CNI_CONFDIR_PATH": "none",
	})
	return env
}

// begin runs the init step and then the daemon.
func (o ours) begin(n *instance) {
	w := o.w
	env, silent := n.environment(w.Cluster.Name), w.EC2.MetadataSilent(w.now(), n.Instance)
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, slowed(initLimit))
		defer cancel()
		out, code, err := n.box.Command(ctx, node.Process{Argv: []string{ipamdPath, "init"}, Env: env})
		w.mail.Post(func() {
			again := ""
			switch {
			case err != nil || code == 0 || n.dying():
			case code == signalled:
				w.byHand = true
				again = "somebody killed ipamd init"
			case silent || w.EC2.MetadataSilent(w.now(), n.Instance):
				again = "ipamd init ends: instance metadata does not answer"
			}
			if again != "" { // kubelet starts it again, as any container
				n.tell(again)
				n.died()
				return
			}
			if (err != nil || code != 0) && !n.Gone && !n.dying() {
				w.fail(fmt.Errorf("%s: ipamd init: exit code %d, %v: %s", n.Name(), code, err, out))
				return
			}
			n.mirror.init(dataplane.HostSpec{PrimaryMAC: n.mac, NodePort: n.Settings.NodePort})
			o.spawn(n, env)
		})
	}()
}

const (
	// initLimit is how long the init step may take: a hundred times what it takes.
	initLimit = time.Minute
	// signalled is the exit code of a process that a signal ended.
	signalled = -1
)

func (o ours) spawn(n *instance, env map[string]string) {
	w := o.w
	if n.Gone {
		return
	}
	if n.dying() { // it was killed before there was a process
		n.died()
		return
	}
	n.report, n.held = nil, 0
	args := []string{"--clock", "unix:" + clockSocket, "--record-version", strconv.Itoa(n.Version), "--booted", n.booted.String()}
	if !w.parts.WithoutBooks {
		args = append(args, "--record", "unix:"+recordSocket)
	}
	no, err := n.box.StartDaemon(args, env)
	if err != nil {
		w.fail(err)
		return
	}
	n.spawned(no)
	if w.parts.WithoutBooks {
		o.expect(n, no)
	}
}

// expect judges I16 without books: by the question that kubelet's readiness probe asks.
func (o ours) expect(n *instance, no int) {
	w, within := o.w, judge.Catalogue()[judge.I16-1].Bound
	w.after(within, func() {
		lives := func() bool { return n.lifeNo == no && n.Lives() && n.process() }
		if !lives() {
			return
		}
		n.asides++
		go func() {
			ctx, cancel := context.WithTimeout(w.ctx, slowed(initLimit))
			defer cancel()
			out, code, err := n.box.Command(ctx, node.Process{Argv: []string{ipamdPath, "status", "--probe=readiness"}})
			w.mail.Post(func() {
				n.asides--
				if err == nil && code != 0 && lives() {
					n.unserved(within, firstOf(string(out)))
				}
			})
		}()
	})
}

func (ours) stop(n *instance) error { return n.box.SignalDaemon(syscall.SIGTERM) }

// ended waits until the recording has been read to its end.
func (o ours) ended(n *instance) { go n.fenceRecording() }

// pause is kubelet's, however often the daemon ends: one of ours that ends by itself has failed already.
func (ours) pause(n *instance) time.Duration { return n.pause }

// toil is what a daemon that lives has to do.
func (ours) toil(n *instance, now time.Duration) string {
	r := n.report
	switch {
	case r == nil:
		return "its daemon has not said that it waits"
	case r.Next >= 0 && r.Next <= now:
		return "its daemon's time has come"
	case n.life.Life != nil && r.Steps != n.life.Steps():
		return "its recording is read"
	case r.Remote != n.held:
		return "a request of its daemon is under way"
	case r.Requests != n.running:
		return "a plugin works"
	}
	return ""
}
