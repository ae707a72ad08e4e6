package systems

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// errNotFolder is what the kernel says of a path that goes through a file.
var errNotFolder error = syscall.ENOTDIR

// resolve is the description of a version with the files of its folder.
func (f *finder) resolve(at located) (*System, error) {
	s, err := f.d.Of(at.version)
	if err != nil {
		return nil, err
	}
	s.Folder, s.Notes = at.folder, append(s.Notes, at.notes...)
	if isFolder(filepath.Join(s.Folder, imageRoot)) {
		s.Root = imageRoot
	}
	if err := s.present(f.o.Arch); err != nil {
		return nil, err
	}
	if err := s.readManifest(); err != nil {
		return nil, err
	}
	if err := s.checkCommands(); err != nil {
		return nil, err
	}
	if err := s.checkConflist(); err != nil {
		return nil, err
	}
	s.enter()
	s.enterRoot()
	return s, nil
}

// present keeps the files that the folder has, and refuses those that no machine of that architecture could run.
func (s *System) present(arch string) error {
	var there []File
	for _, file := range s.Files {
		p := filepath.Join(s.Folder, filepath.FromSlash(file.From))
		info, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder) {
			if file.Optional {
				continue
			}
			return fmt.Errorf("expected the file %s for version %s, found %s", p, s.Version, entries(s.Folder))
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: expected a file, found %s", p, kindOf(info))
		}
		if file.Mode&0o111 != 0 {
			if info.Mode()&0o111 == 0 {
				return fmt.Errorf("%s: expected an executable, found a file with the permissions %v (chmod +x %s)", p, info.Mode().Perm(), p)
			}
			if err := checkMachine(p, arch); err != nil {
				return err
			}
		}
		there = append(there, file)
	}
	s.Files = there
	return nil
}

// entries is what a folder has, in a few words.
func entries(folder string) string {
	list, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
	}
	const most = 12
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	switch {
	case len(names) == 0:
		return "an empty folder"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// machine is what an ELF file says that runs on an architecture.
type machine struct {
	machine elf.Machine
	class   elf.Class
	data    elf.Data
}

var machines = map[string]machine{
	"amd64": {elf.EM_X86_64, elf.ELFCLASS64, elf.ELFDATA2LSB},
	"arm64": {elf.EM_AARCH64, elf.ELFCLASS64, elf.ELFDATA2LSB},
}

// checkMachine refuses an executable that the architecture cannot run. A script is its interpreter's.
func checkMachine(file, arch string) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	head := make([]byte, 2)
	if _, err := r.ReadAt(head, 0); err == nil && string(head) == "#!" {
		return nil
	}
	e, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("%s: expected an executable for linux/%s, found no ELF file: %v", file, arch, err)
	}
	defer e.Close()
	want := machines[arch]
	if found := (machine{e.Machine, e.Class, e.Data}); found != want {
		return fmt.Errorf("%s: expected an executable for linux/%s (%v, %v), found one for %v, %v (build it with GOARCH=%s, or take the image of that platform)",
			file, arch, want.machine, want.class, found.machine, found.class, arch)
	}
	if e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN {
		return fmt.Errorf("%s: expected an executable for linux/%s, found an ELF file of the type %v", file, arch, e.Type)
	}
	return nil
}

func (s *System) readManifest() error {
	d := s.Daemon
	if d == nil || d.Manifest == "" {
		return nil
	}
	p := filepath.Join(s.Folder, filepath.FromSlash(d.Manifest))
	data, err := readBounded(p, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		s.Notes = append(s.Notes, fmt.Sprintf("there is no %s: the environment is the description's alone", d.Manifest))
		return nil
	}
	if err != nil {
		return err
	}
	m, err := parseManifest(p, data, d.Container)
	if err != nil {
		return err
	}
	m.File, m.From = d.Manifest, s.Version
	s.Manifest, s.Notes = m, append(s.Notes, m.Notes...)
	return nil
}

// checkCommands refuses a daemon, and leaves an init step out, whose file is not there; a path that no file goes to is the node's own.
func (s *System) checkCommands() error {
	if s.Daemon == nil {
		return nil
	}
	if s.Daemon.Stop.Grace == 0 {
		s.Daemon.Stop.Grace = longStop
		if s.Manifest != nil {
			s.Daemon.Stop.Grace = s.Manifest.Grace
		}
	}
	to := make([]string, len(s.Files))
	for i, f := range s.Files {
		to[i] = f.To
	}
	if argv := s.Daemon.Argv[0]; !slices.Contains(to, argv) && !s.hasProgram(argv) {
		return fmt.Errorf("the daemon's argv begins with %s, to which no file goes (there are %s)", argv, strings.Join(to, ", "))
	}
	var steps []Command
	for _, c := range s.Daemon.Init {
		lacks := s.lacks(c.Needs)
		switch {
		case c.Optional && len(lacks) > 0 && slices.Contains(to, c.Argv[0]):
			s.Notes = append(s.Notes, fmt.Sprintf("the init step %s is left out: the folder has no %s", c.Argv[0], strings.Join(lacks, ", ")))
		case slices.Contains(to, c.Argv[0]) || s.hasProgram(c.Argv[0]):
			steps = append(steps, c)
		case c.Optional:
			s.Notes = append(s.Notes, fmt.Sprintf("the init step %s is left out: its file is not there", c.Argv[0]))
		default:
			return fmt.Errorf("the init step's argv begins with %s, to which no file goes (there are %s)", c.Argv[0], strings.Join(to, ", "))
		}
	}
	s.Daemon.Init = steps
	return nil
}

// lacks are those of some files that the folder has not.
func (s *System) lacks(files []string) (out []string) {
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(s.Folder, filepath.FromSlash(name))); err != nil {
			out = append(out, name)
		}
	}
	return out
}

// enter has the image's entrypoint start the daemon, where the folder has all that it needs. It finds its files where the image has them, and installs
// plugins and configuration itself, so these are no steps of an upgrade then.
func (s *System) enter() {
	if !s.Enters() {
		return
	}
	e := s.Daemon.Entrypoint
	lacks := s.lacks(e.Needs)
	if s.Root != "" {
		lacks = nil // its image has all that it has
	}
	if !slices.ContainsFunc(s.Files, func(f File) bool { return f.To == e.Argv[0] }) && (s.Root == "" || !s.InRoot(e.Argv[0])) {
		lacks = []string{path.Base(e.Argv[0])}
	}
	if len(lacks) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("the entrypoint %s is not run, the upgrade's steps stand for it: the folder has no %s", e.Argv[0], strings.Join(lacks, ", ")))
		s.Daemon.Entrypoint = nil
		return
	}
	for i, f := range s.Files {
		if f.Image != "" {
			s.Files[i].To = f.Image
		}
	}
	if s.Conflist.Image != "" {
		s.Conflist.To = path.Dir(s.Conflist.Image)
	}
	s.Upgrade.Steps, s.Upgrade.Rollback = entering(s.Upgrade.Steps), entering(s.Upgrade.Rollback)
}

// enterRoot has daemon and init steps run in their image's root, if there is one, where their files are those of the image.
func (s *System) enterRoot() {
	if s.Root == "" || s.Daemon == nil {
		return
	}
	s.Kernel = append(s.Kernel, "overlay")
	s.Notes = append(s.Notes, "its daemon runs in the root of its image")
	at := func(argv []string) {
		for _, f := range s.Files {
			if f.To == argv[0] && f.Image != "" {
				argv[0] = f.Image
			}
		}
	}
	at(s.Daemon.Argv)
	for _, c := range s.Daemon.Init {
		at(c.Argv)
	}
}

// Contents are the paths below Folder of all that is played of the system: files, and of an image the whole folder.
func (s *System) Contents() (out []string) {
	if s.Root != "" { // its folder has links to what else is needed
		return []string{"."}
	}
	if s.Conflist.From != "" {
		out = append(out, s.Conflist.From)
	}
	for _, f := range s.Files {
		out = append(out, f.From)
	}
	return out
}

// InRoot says whether the image's root has a file.
func (s *System) InRoot(name string) bool {
	root, err := os.OpenRoot(filepath.Join(s.Folder, s.Root)) // no link leads out of it
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(strings.TrimPrefix(path.Clean("/"+name), "/"))
	return err == nil
}

// entering is an order of steps for an entrypoint: the configuration lies ready before the start, plugins are files like any other.
func entering(steps []Step) (out []Step) {
	for _, step := range steps {
		switch step {
		case StepPlugins, StepConflist:
		case StepStart:
			out = append(out, StepConflist, step)
		default:
			out = append(out, step)
		}
	}
	return out
}

// hasProgram says whether a path that no file goes to is the image's, or may be among the host's programs, which every node has.
func (s *System) hasProgram(p string) bool {
	if s.Root != "" {
		return s.InRoot(p)
	}
	return slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/"}, func(dir string) bool {
		return strings.HasPrefix(p, dir)
	})
}

// checkConflist sees that the plugins are there, and names them.
func (s *System) checkConflist() error {
	if s.Conflist.Name == "" {
		return nil
	}
	text, err := s.conflistText()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("expected the conflist %s for version %s, found %s", filepath.Join(s.Folder, s.Conflist.From), s.Version, entries(s.Folder))
		}
		return err
	}
	// Whatever a node fills in: what is a number in JSON is written without quotes, so a number stands for all.
	text, err = s.fill(text, func(v string) (string, error) {
		out, m := expand(v, func(string) (string, *mistake) { return "0", nil })
		if m != nil {
			return "", errors.New(m.text)
		}
		return out, nil
	})
	if err != nil {
		return err
	}
	l, err := s.parseList(text)
	if err != nil {
		return err
	}
	kept, dropped := s.keep(l.plugins)
	for _, name := range dropped {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is taken out of %s: the folder has no such plugin", name, s.Conflist.Name))
	}
	s.Plugins = nil
	for i, p := range kept {
		if !s.hasPlugin(p.Type) {
			return fmt.Errorf("%s calls the plugin %s, which %s does not have: it has %s (put it there, or name it in the conflist's optional)",
				s.Conflist.Name, p.Type, s.Folder, entries(s.Folder))
		}
		if p.IPAM != "" && !s.hasPlugin(p.IPAM) {
			if i == 0 {
				return fmt.Errorf("%s: the plugin %s calls %s for addresses, which %s does not have: it has %s", s.Conflist.Name, p.Type, p.IPAM, s.Folder, entries(s.Folder))
			}
			s.Notes = append(s.Notes, fmt.Sprintf("the folder has no %s: %s fails where it asks it for addresses", p.IPAM, p.Type))
		}
		s.Plugins = append(s.Plugins, p.Type)
	}
	return nil
}
