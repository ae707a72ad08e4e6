package netns

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	"github.com/enilab/enilab/fakes/kube/apiserver"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/systems"
)

// described keeps the daemons of systems of which only a description is known. They run in real time, from their first
// good answer to the end of their process, and are judged from outside.
type described struct{ w *World }

var _ keeper = described{}

func (k described) spec(n *instance) node.Spec {
	p := &k.w.parts
	n.system, n.plugin = p.System, p.System
	n.plan(p.System.Upgrade.Steps)
	files := maps.Clone(p.Files)
	if files == nil {
		files = map[string]string{}
	}
	files[folderOf(p.System)] = p.System.Folder
	for _, s := range p.others {
		files[folderOf(s)] = s.Folder
	}
	if p.Later != "" {
		files[laterFolder] = p.Later
	}
	return node.Spec{Name: n.Name(), Self: p.Self, Files: files, Slowness: slowness()}
}

// listen gives a node what systems find by themselves: names, certificates, a service account, and who answers there.
func (k described) listen(n *instance) error {
	w := k.w
	config, err := apiserver.Kubeconfig("http://"+kubeAddr, "", nil)
	if err != nil {
		return err
	}
	files := map[string][]byte{authorityPath: w.around.ca, kubeconfigPath: config,
		"/etc/hosts": fmt.Appendf(nil, "127.0.0.1 localhost\n127.0.1.1 %s\n%s %s\n", n.Name(), ec2NameAddr, ec2Name)}
	for name, data := range apiserver.ServiceAccount(accountToken, "kube-system", w.around.ca) {
		files[path.Join(apiserver.AccountFolder, name)] = data
	}
	for name, data := range files {
		if err := n.box.WriteFile(name, data); err != nil {
			return err
		}
	}
	for addr, s := range map[string]*http.Server{
		ec2NameAddr + ":443":                 ec2server.Server(ec2server.Handler(&backend{n})),
		net.JoinHostPort(kubeHost, kubePort): apiserver.Serve(w.around.api),
	} {
		l, err := n.listen("tcp", addr)
		if err != nil {
			return err
		}
		n.servers = append(n.servers, s)
		secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{w.around.cert}, NextProtos: []string{"http/1.1"}})
		go func() { _ = s.Serve(secure) }()
	}
	return n.listenPolicies()
}

// kubernetes is the API server for clients of other projects.
func (k described) kubernetes(*instance) *http.Server { return apiserver.Serve(k.w.around.api) }

func (described) runtime(n *instance) (api, socket string) {
	return n.system.Runtime.API, n.system.Runtime.Socket
}

// installed is never asked: our versions are of our own plugin.
func (described) installed(*instance) error { return nil }

// began is what a start of a daemon has come to.
type began struct {
	said string // why there is no process
	env  map[string]string
	argv []string
	err  error // of the laboratory
}

// begin does what has to be done before the daemon starts, and starts it.
func (k described) begin(n *instance) {
	w := k.w
	s, words, settings, install := n.system, n.words(), settingsOf(&n.Node), n.before
	n.before = []systems.Step{systems.StepInit}
	n.tokenless.begin()
	var todo []systems.Step
	if i := slices.Index(install, systems.StepInit); i >= 0 {
		install, todo = install[:i], install[i:]
	}
	work := n.installer(words, settings)
	go func() {
		b := began{err: work.do(w.ctx, install)}
		if b.err == nil {
			w.mail.Post(func() { k.await(n) })
			b.err = work.do(w.ctx, todo)
		}
		if e, failed := b.err.(*failedStep); failed {
			b.err, b.said = nil, e.Error()
		}
		if b.err == nil && s.Daemon != nil {
			b.env, b.err = s.Environment(words, settings)
			if b.err == nil {
				argv := s.Daemon.Argv
				if s.Enters() {
					argv = s.Daemon.Entrypoint.Argv
				}
				b.argv, b.err = s.Argv(argv, words, b.env)
			}
		}
		w.mail.Post(func() { k.begun(n, &b) })
	}()
}

// await begins the bound in which a daemon has to serve: with its init steps, once its files are there. How long those take is this laboratory's doing.
func (k described) await(n *instance) {
	if n.expected != 0 || n.Gone || n.dying() || n.system.Daemon == nil {
		return
	}
	n.expected = max(1, k.w.now())
	k.expect(n)
}

func (k described) begun(n *instance, b *began) {
	w, s := k.w, n.system
	switch {
	case n.Gone:
		return
	case b.err != nil:
		w.fail(fmt.Errorf("%s: %w", n.Name(), b.err))
		return
	case n.dying(): // it was killed before there was a process
		n.died()
		return
	case b.said != "":
		k.failed(n, b.said)
		return
	}
	if s.Daemon == nil {
		k.serves(n)
		return
	}
	keep, err := capabilityNumbers(s.Capabilities())
	if err != nil {
		w.fail(err)
		return
	}
	no, err := n.box.StartProcess(node.Process{Argv: b.argv, Env: b.env, Capabilities: keep, Folder: s.Daemon.Folder, Container: s.Enters() || s.Root != "",
		Root: rootOf(s, w.around)})
	if err != nil { // it cannot be executed
		k.failed(n, err.Error())
		return
	}
	n.spawned(no)
	ctx, cancel := context.WithCancel(w.ctx)
	n.stopWaiting = cancel
	go func() {
		if awaitServing(ctx, n.box, &s.Daemon.Serves) && (!s.Enters() || configured(ctx, n.box, s)) {
			w.mail.Post(func() {
				if n.lifeNo == no && n.life == nil && n.process() {
					k.serves(n)
				}
			})
		}
	}()
}

// failed is a start that came to nothing.
func (k described) failed(n *instance, said string) {
	k.w.log("%s: %s", n.Name(), said)
	n.startError = said
	n.failures++
	n.died()
}

// serves begins a life.
func (k described) serves(n *instance) {
	w := k.w
	if n.expected != 0 {
		w.costs.start = max(w.costs.start, w.now()-n.expected)
	}
	n.heard(&life{no: n.lifeNo})
	n.Changed, n.expected, n.startError = true, 0, ""
	n.served = w.now()
	known := n.Settings
	switch s := n.system; {
	case s.Daemon == nil: // no daemon keeps addresses back
		known.CoolDown = 0
	case !slices.Contains(s.Daemon.Settings, "IP_COOLDOWN_PERIOD"):
		known.CoolDown = ipam.Defaults().CoolDown // what is not set for it cannot change it
	}
	w.witness.Runs(n.No, &known)
	w.Ran(&n.Node)
	w.log("%s: %s serves", n.Name(), n.program())
	n.beside(n.after, nil)
	n.after = nil
}

// expect judges I16: when the bound is over, the daemon serves, or it is not waited for any more.
func (k described) expect(n *instance) {
	w, since, within := k.w, n.expected, slowed(n.system.Daemon.Serves.Within).Round(time.Second)
	w.after(within, func() {
		if n.expected != since || n.Gone || n.Down || w.unwanted() {
			return
		}
		said := n.startError
		if said == "" {
			said = n.lastSaid()
		}
		n.unserved(within, said)
		if n.system.Enters() && n.process() { // its livenessProbe has failed: an entrypoint may wait for ever for a daemon that has ended
			n.failures++
			n.kill()
		}
	})
}

// stop is SIGTERM, or what the description says, and SIGKILL for who has not ended by then.
func (k described) stop(n *instance) error {
	w, s := k.w, n.runs()
	if n.unmanned() {
		w.at(w.now(), n.died)
		return nil
	}
	no := n.lifeNo
	w.after(s.Daemon.Stop.Grace, func() {
		if n.lifeNo == no && n.process() {
			n.tell(fmt.Sprintf("%s has not ended within %v: it is killed", n.program(), s.Daemon.Stop.Grace))
			w.fail(n.box.SignalDaemon(syscall.SIGKILL))
		}
	})
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(s.Daemon.Stop.Signal, "SIG"))
	sig = cmp.Or(sig, syscall.SIGTERM)
	return n.box.SignalDaemon(sig)
}

func (k described) ended(n *instance) {
	if n.stopWaiting != nil {
		n.stopWaiting()
	}
	if n.life != nil && k.w.now()-n.served > backOffForgets {
		n.failures = 0
	}
	n.died()
}

// Kubelet's back-off for containers that end by themselves: the first restart is at once, the second after backOffFirst, each further one after
// twice as long, up to backOffMost. Who has run for backOffForgets begins anew.
const (
	backOffFirst   = 10 * time.Second
	backOffMost    = 5 * time.Minute
	backOffForgets = 10 * time.Minute
)

func (described) pause(n *instance) time.Duration {
	if n.failures <= 1 {
		return n.pause
	}
	return min(backOffMost, backOffFirst<<min(n.failures-2, 8))
}

// restTime is how long, in the machine's time, an EC2 that was changed may be followed by what the daemon does about it: two of upstream's ticks.
const restTime = 12 * time.Second

// toil: such a daemon does not report that it waits. It does when nothing of it is to be seen; see realKernel.stirred
// for how long.
func (described) toil(n *instance, _ time.Duration) string {
	switch {
	case n.held > 0:
		return "a request of its daemon is under way"
	case n.running > 0:
		return "a plugin runs"
	}
	return ""
}

// settles names what a daemon may still follow up.
func (n *instance) settles() string {
	if n.system != nil && time.Since(n.mutated) < restTime {
		return "its daemon has changed something at EC2 a moment ago"
	}
	return ""
}

// capabilityNumbers are the kernel's of names such as CAP_NET_ADMIN; nil is all.
func capabilityNumbers(names []string) ([]int, error) {
	if names == nil {
		return nil, nil
	}
	out := []int{}
	for _, name := range names {
		i := slices.Index(capabilities, strings.TrimPrefix(name, "CAP_"))
		if i < 0 {
			return nil, fmt.Errorf("unknown capability %s: capabilities(7) lists them", name)
		}
		out = append(out, i)
	}
	return out, nil
}

// capabilities are the kernel's, in the order of their numbers (capabilities(7)).
var capabilities = strings.Fields("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE " +
	"NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN " +
	"SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE " +
	"MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE")
