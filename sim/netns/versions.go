package netns

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/systems"
)

// versions are the systems that a node has.
type versions struct {
	system  *systems.System // the daemon's; nil: it is ours, by its recording
	plugin  *systems.System // the plugin's
	was     *systems.System // whose daemon still runs while another one's is awaited
	before  []systems.Step  // what is done before the next start
	after   []systems.Step  // and once it serves
	policed bool            // it has a network policy agent's port
	// mutated is when EC2 last carried out something for it, in the machine's time.
	mutated time.Time
}

// runs is the system whose daemon runs.
func (v *versions) runs() *systems.System {
	if v.was != nil {
		return v.was
	}
	return v.system
}

// plan takes an order of steps apart: what comes before the daemon is stopped, before the next one starts, and after that. The first start does all
// but the stop.
func (v *versions) plan(order []systems.Step) (before []systems.Step) {
	if len(order) == 0 {
		order = []systems.Step{systems.StepStop, systems.StepFiles, systems.StepPlugins, systems.StepInit, systems.StepStart, systems.StepServes, systems.StepConflist}
	}
	start := slices.Index(order, systems.StepStart)
	if start < 0 {
		start = len(order)
	}
	stop := max(0, slices.Index(order[:start], systems.StepStop))
	v.before, v.after = nil, nil
	for i, s := range order {
		switch {
		case s == systems.StepStop || s == systems.StepStart || s == systems.StepServes:
		case i < stop:
			before = append(before, s)
			v.before = append(v.before, s) // a first start has no daemon to stop
		case i < start:
			v.before = append(v.before, s)
		default:
			v.after = append(v.after, s)
		}
	}
	return before
}

// program is what the story calls a node's daemov.
func (v *versions) program() string {
	if v.system == nil {
		return "ipamd"
	}
	if v.system.Daemon == nil {
		return v.system.Name
	}
	return path.Base(v.runs().Daemon.Argv[0])
}

// unmanned says whether the node has a system without a daemov.
func (v *versions) unmanned() bool { return v.system != nil && v.runs().Daemon == nil }

// Exchange has another system's daemon, plugin or both run, in the order that its description says. What the daemon installs of its own plugin or
// conflist gives way again where another one's was wanted.
func (n *instance) Exchange(to, part string, keep bool) bool {
	w, next := n.w, n.w.parts.others[to]
	old := n.system
	if next == nil || (part == "plugin" || same(next, old)) && (part == "daemon" || same(next, n.plugin)) {
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
		apart := func(s systems.Step) bool { return slices.Contains(theirs, s) }
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

// theirs are the steps about what the runtime calls. Where daemon and plugin are of two versions stepTheirs takes their place: it puts the plugin and its
// configuration where the runtime looks for them, as is done in an ordinary upgrade.
var theirs = []systems.Step{systems.StepPlugins, systems.StepConflist}

const stepTheirs systems.Step = "what the runtime calls"

func same(a, b *systems.System) bool { return a.Name == b.Name && a.Version == b.Version }

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

// installer does the steps of an upgrade that are not about the daemon's process. It is a value of its own: it works beside the loop.
type installer struct {
	box            *node.Node
	system, plugin *systems.System
	words          systems.Words
	settings       map[string]string
	root           *node.Root // of the system's init steps
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

// do ends with the first step that fails: a *failedStep, if that is the system's fault.
func (i *installer) do(ctx context.Context, steps []systems.Step) error {
	for _, s := range steps {
		var err error
		switch s {
		case systems.StepFiles:
			err = i.files()
		case systems.StepPlugins:
			err = i.box.Install(copies(i.plugin, isPlugin))
		case systems.StepInit:
			err = i.init(ctx)
		case systems.StepConflist:
			err = i.conflist(i.plugin.Conflist.To)
		case stepTheirs:
			if err = i.box.Install(called(i.plugin)); err == nil {
				err = i.conflist(systems.ConfigFolder)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// files are those that are not plugins', the paths that a daemon's container has of them, and the kernel's settings. What runs in its image's root
// has its files there, and its mounts are made with it.
func (i *installer) files() error {
	inRoot := i.system.Root != ""
	which := func(f *systems.File) bool { return !isPlugin(f) && (f.Image == "" || !inRoot) }
	if err := i.box.Install(copies(i.system, which)); err != nil {
		return err
	}
	for _, m := range i.system.AllMounts() {
		if path.Clean(m.Container) == path.Clean(m.Node) || inRoot && !ofRun(m.Container) {
			continue
		}
		if err := i.box.Link(m.Container, m.Node); err != nil {
			return err
		}
	}
	for name, value := range i.system.Sysctls {
		if err := i.box.WriteFile(path.Join("/proc/sys", name), []byte(value)); err != nil {
			return fmt.Errorf("set /proc/sys/%s to %s: %w", name, value, err)
		}
	}
	return nil
}

// ofRun says whether a path is below /run, which a container shares with its node as a whole.
func ofRun(p string) bool {
	p = path.Clean(p)
	return strings.HasPrefix(p, "/run/") || strings.HasPrefix(p, "/var/run/")
}

// rootOf is the root of a system's processes that came as an image, where the run's authority is trusted too, and what of the node is mounted there; nil: they have the
// node's.
func rootOf(s *systems.System, around *outskirts) *node.Root {
	if s.Root == "" {
		return nil
	}
	r := &node.Root{Image: path.Join(folderOf(s), s.Root), Trust: string(around.ca),
		Mounts: []node.Mount{{Container: path.Dir(authorityPath), Node: path.Dir(authorityPath)}}}
	for _, m := range s.AllMounts() {
		if !ofRun(m.Container) {
			r.Mounts = append(r.Mounts, node.Mount{Container: m.Container, Node: m.Node})
		}
	}
	if s.Conflist.Image != "" && s.Conflist.To != systems.ConfigFolder { // without the plugins that it lacks
		mine := path.Join(s.Conflist.To, s.Conflist.Name)
		r.Mounts = append(r.Mounts, node.Mount{Container: mine, Node: mine, File: true})
	}
	for _, f := range s.Files {
		if s.Enters() && f.Pause > 0 && s.InRoot("/bin/sh") { // see node.Copy
			r.Files = append(r.Files, node.Copy{From: f.Image, To: f.Image, Mode: 0o755, Pause: f.Pause})
		}
	}
	return r
}

func isPlugin(f *systems.File) bool { return path.Dir(f.To) == systems.PluginFolder }

// copies are a system's files of a kind.
func copies(s *systems.System, which func(*systems.File) bool) (out []node.Copy) {
	for _, f := range s.Files {
		if which(&f) {
			mode := cmp.Or(f.Mode, 0o755)
			c := node.Copy{From: path.Join(folderOf(s), f.From), To: f.To, Mode: mode}
			if s.Enters() {
				c.Pause = f.Pause
			}
			out = append(out, c)
		}
	}
	return out
}

// called are the plugins of a system that the runtime calls, wherever its image has them.
func called(s *systems.System) []node.Copy {
	out := copies(s, func(f *systems.File) bool { return isPlugin(f) || slices.Contains(s.Plugins, f.From) })
	for i := range out {
		out[i].To = path.Join(systems.PluginFolder, path.Base(out[i].To))
	}
	return out
}

// conflist writes the configuration to a folder, empty being the runtime's.
func (i *installer) conflist(folder string) error {
	env, err := i.plugin.Environment(i.words, i.settings)
	if err != nil {
		return err
	}
	text, err := i.plugin.Configuration(i.words, env)
	if i.plugin.Enters() && folder != systems.ConfigFolder && err == nil {
		text, err = i.plugin.Template()
	}
	if err != nil || text == nil {
		return err
	}
	folder = cmp.Or(folder, systems.ConfigFolder)
	return i.box.WriteFile(path.Join(folder, i.plugin.Conflist.Name), text)
}

// failedStep is an init step that has failed: kubelet starts it again, as it does a daemon that has ended.
type failedStep struct{ text string }

func (f *failedStep) Error() string { return f.text }

// initWithin bounds an init step whose description does not.
const initWithin = 2 * time.Minute

func (i *installer) init(ctx context.Context) error {
	if i.system.Daemon == nil {
		return nil
	}
	daemon, err := i.system.Environment(i.words, i.settings)
	if err != nil {
		return err
	}
	for _, c := range i.system.Daemon.Init {
		env, err := i.system.InitEnvironment(c, i.words, daemon)
		if err != nil {
			return err
		}
		argv, err := i.system.Argv(c.Argv, i.words, env)
		if err != nil {
			return err
		}
		if c.Optional && i.root == nil {
			if _, code, err := i.box.Exec(ctx, []string{"test", "-e", argv[0]}); err != nil || code != 0 {
				continue
			}
		}
		within := cmp.Or(c.Within, initWithin)
		ends, cancel := context.WithTimeout(ctx, within)
		out, code, err := i.box.Command(ends, node.Process{Argv: argv, Env: env, Folder: c.Folder, Root: i.root})
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || code != 0 {
			return &failedStep{fmt.Sprintf("init step %s: exit code %d, %v: %s", argv[0], code, err, firstOf(string(out)))}
		}
	}
	return nil
}
