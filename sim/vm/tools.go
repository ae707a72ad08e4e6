package vm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/systems"
)

// nodePath are the folders in which a node looks for programs: it has them of this computer.
var nodePath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// lookTool finds one of this computer's programs where a node would, whatever PATH the user has.
func lookTool(name string) (string, error) {
	for _, dir := range nodePath {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// hasTool says whether this computer has a program where a node looks for it.
func hasTool(name string) bool {
	_, err := lookTool(name)
	return err == nil
}

// tools are the programs that systems execute, sorted, each once.
func tools(found map[string]*systems.System) (out []string) {
	for _, s := range found {
		for _, n := range s.Needs() {
			out = append(out, n.Tool)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// modules are those of the kernel that systems need, sorted, each once.
func modules(found map[string]*systems.System) (out []string) {
	for _, s := range found {
		out = append(out, s.Modules()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// demands are what systems need of the machine that they are played on, and what that machine has.
type demands struct {
	found   map[string]*systems.System // by what they were asked for
	machine string                     // in a sentence
	tool    func(name string) bool
	kernel  string                   // in a sentence
	module  func(module string) bool // nil: nobody knows which the kernel has
}

// missing says in sentences what the machine lacks; empty: nothing.
func (n *demands) missing() string {
	var all []systems.Need
	var said []string
	for _, name := range slices.Sorted(maps.Keys(n.found)) {
		all = append(all, n.found[name].Needs()...)
		if n.module == nil {
			continue
		}
		if text := n.found[name].MissingModules(n.kernel, n.module); text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	if text := systems.Missing(all, n.machine, n.tool); text != "" {
		said = append([]string{text}, said...)
	}
	return strings.Join(said, "; ")
}

// demands are what the systems need, and what the machine will be given.
func (l *Laboratory) demands(k *Kernel) (n *demands, err error) {
	n = &demands{found: l.needing(), machine: "this computer", tool: hasTool, kernel: "kernel " + k.Version}
	if l.foreign() {
		n.machine, n.tool = "a virtual machine of "+l.Arch+", which is given Debian's busybox-static,", isApplet
	}
	if len(modules(l.needing())) > 0 {
		n.module, err = k.Has()
	}
	return n, err
}

// Equip writes into systems that are played on this computer's own kernel which tools they are given, or returns a
// *Lacking for what they need and this computer has not.
func Equip(found map[string]*systems.System) error {
	k := Running()
	n := demands{found: found, machine: "this computer", tool: hasTool, kernel: "Linux " + k.Version}
	if has, err := k.Has(); err == nil { // without a list of its modules nobody knows what is in it
		n.module = func(m string) bool { return has(m) || Loaded(m) }
	}
	if text := n.missing(); text != "" {
		return &Lacking{text}
	}
	give(found, thisComputer)
	return nil
}

// give writes into systems which tools a machine has for them.
func give(found map[string]*systems.System, look func(tool string) string) {
	known := map[string]string{}
	for _, s := range found {
		s.Given = nil
		for _, n := range s.Needs() {
			if known[n.Tool] == "" {
				known[n.Tool] = look(n.Tool)
			}
			s.Given = append(s.Given, known[n.Tool])
		}
	}
}

// Given are the tools that a machine has for systems, each once.
func Given(found map[string]*systems.System) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, g := range found[name].Given {
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// versionWithin is how long a tool may take to say its version.
const versionWithin = 5 * time.Second

// thisComputer is a tool of this computer with its version, or its digest where it says none.
func thisComputer(tool string) string {
	path, err := lookTool(tool)
	if err != nil {
		return tool + ", which this computer has not"
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !strings.ContainsAny(line, "0123456789") || len(line) > 100 {
		return tool + ", " + digestText(path) + ", from this computer"
	}
	if !strings.HasPrefix(line, tool+" ") {
		line = tool + ": " + line
	}
	return line + " from this computer"
}

// given is a tool as the machine has it: of another architecture Busybox's, which cannot be executed here.
func (l *Laboratory) given(tool string) string {
	if !l.foreign() {
		return thisComputer(tool)
	}
	path, err := Busybox(l.Arch)
	if err != nil {
		return tool + ", for which there is no Busybox"
	}
	return tool + " of busybox-static, " + digestText(path)
}

func digestText(path string) string {
	h := sha256.New()
	f, err := os.Open(path)
	if err == nil {
		_, err = io.Copy(h, f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "which cannot be read"
	}
	return fmt.Sprintf("sha256 %x", h.Sum(nil)[:8])
}

// furnish puts into the machine what the laboratory executes: the daemon and the plugin beside enilab, and of this
// computer what a node's steps and some daemons use.
func (l *Laboratory) furnish(programs string) error {
	m := l.machine.Image
	for _, name := range []string{"ipamd", "aws-cni"} {
		if err := m.AddFile(filepath.Join(Programs, name), filepath.Join(programs, name)); err != nil {
			return &Lacking{fmt.Sprintf("a virtual machine needs %s beside enilab (%v): make build makes ipamd, "+
				"aws-cni and enilab side by side", name, err)}
		}
	}
	needed := []string{"env", "true"}
	if l.foreign() {
		return l.addBusybox(m, slices.Concat(needed, []string{"sh"}, tools(l.needing())))
	}
	wished := []string{"sh", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save",
		"ip6tables-restore", "xtables-nft-multi"}
	for _, name := range needed {
		if !hasTool(name) {
			return &Lacking{fmt.Sprintf("a virtual machine is given this computer's %s, which it has not: apt-get "+
				"install %s", name, systems.Package(name))}
		}
	}
	if err := addTools(m, slices.Concat(needed, tools(l.needing()), wished)); err != nil {
		return err
	}
	for _, dir := range []string{"/bin", "/sbin"} { // scripts name their interpreter by /bin
		if target, err := os.Readlink(dir); err == nil {
			m.AddLink(dir, target)
		}
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu/xtables", "/usr/lib/aarch64-linux-gnu/xtables"} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := m.AddHost(dir); err != nil {
			return fmt.Errorf("give a virtual machine this computer's %s: %w", dir, err)
		}
	}
	return nil
}

// addTools puts those of this computer's programs into an image that it has.
func addTools(m *Image, names []string) error {
	for _, name := range names {
		path, err := lookTool(name)
		if err != nil {
			continue
		}
		if err := m.AddProgram(path); err != nil {
			return fmt.Errorf("give a virtual machine this computer's %s: %w", name, err)
		}
	}
	return nil
}

// addBusybox puts one program with many names into a machine that cannot execute this computer's. A name may be there
// twice.
func (l *Laboratory) addBusybox(m *Image, names []string) error {
	path, err := Busybox(l.Arch)
	if err != nil {
		return err
	}
	if err := m.AddFile("/usr/bin/busybox", path); err != nil {
		return err
	}
	m.AddLink("/bin", "usr/bin")
	for _, name := range names {
		m.AddLink("/usr/bin/"+name, "busybox")
	}
	return nil
}

// equip puts tools into a machine that pauses: of this computer what it has, or of Busybox.
func (l *Laboratory) equip() error {
	l.Pause.Tools = NewImage()
	if l.foreign() {
		return l.addBusybox(l.Pause.Tools, strings.Fields(`sh ip netstat ping nsenter ps ls cat head tail less
			grep sed awk cut sort uniq wc find hexdump stat readlink date sleep vi`))
	}
	return addTools(l.Pause.Tools, strings.Fields(`sh bash busybox ip ss nft iptables iptables-save ip6tables
		ip6tables-save xtables-nft-multi conntrack tc bridge ping tcpdump nsenter lsns ps ls cat head tail less grep sed
		awk cut sort uniq wc find od hexdump stat readlink date sleep jq strace`))
}
