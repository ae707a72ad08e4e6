package netns

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/systems"
)

// systemsFolder is where a node has the files of all systems that its scenario names, to be copied from.
const systemsFolder = "/opt/enilab/systems/"

// laterFolder is where a node has those of a system that it learns of later (Parts.Later).
const laterFolder = systemsFolder + "later"

func folderOf(s *systems.System) string { return systemsFolder + s.Name + "@" + s.Version }

// installer does the steps of an upgrade that are not about the daemon's process. It is a value of its own: it works beside the loop.
type installer struct {
	box            *node.Node
	system, plugin *systems.System
	words          systems.Words
	settings       map[string]string
	root           *node.Root // of the system's init steps
}

// runtimeSteps are the steps about what the runtime calls. Where daemon and plugin are of two versions stepTheirs takes
// their place: it puts the plugin and its configuration where the runtime looks for them, as in an ordinary upgrade.
var runtimeSteps = []systems.Step{systems.StepPlugins, systems.StepConflist}

const stepTheirs systems.Step = "what the runtime calls"

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
