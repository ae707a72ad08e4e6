package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/systems"
)

func (l *cli) systemsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "systems",
		Short: "lists the CNIs that can be played, and their versions",
		Long: `systems lists the systems under test: descriptions of CNIs, for which versions they are, which of those are at hand, and what each needs.
docs/systems.md says how to write one.

A system is NAME@WHERE. WHERE is a version in NAME of $ENILAB_SYSTEMS or, without it, of enilab/systems in your cache folder (1.5.3, or 1.5 for its
newest): get fetches it there. It may be a folder with its binaries, an image
(an archive, or HOST/NAME:TAG), and for what is built from source a version of its module, or a commit or tag of the repository that the
working folder is in. VERSION=WHERE says the version of a folder or an image that does not say it itself.`,
		Example: `  enilab systems
  enilab systems get amazon-vpc-cni-k8s@1.23.1
  enilab systems show amazon-vpc-cni-k8s@1.5.3
  enilab systems show ptp@1.9.1 --json
  enilab systems show my-cni.yaml@1.0.0=./bin`,
		Args: known,
		RunE: func(*cobra.Command, []string) error {
			list, err := systems.List(systems.Options{})
			if err != nil {
				return usage("systems: %v", err)
			}
			if asJSON {
				return l.writeJSON(systemsDocument(list), 0)
			}
			return l.printSystems(list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `write {"systems": [{name, about, file, ranges: [{from, before, versions, daemon, runtime, ec2, metadata, kubernetes, books}], atHand, error}]}`)
	c.AddCommand(l.systemsShowCommand(), l.systemsGetCommand())
	return c
}

func (l *cli) systemsShowCommand() *cobra.Command {
	asJSON, arch := false, ""
	c := &cobra.Command{
		Use:   "show NAME@WHERE",
		Short: "says what a node is given, and what its daemon is told",
		Long: `show finds a system as run does, and prints what comes of its description: the files, the configuration, the daemon's command line and
environment. What a node fills in is left as ${NAME}.`,
		Example: `  enilab systems show amazon-vpc-cni-k8s@1.23.0
  enilab systems show enilab@HEAD`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%s takes one argument, NAME@WHERE, found %d (enilab systems lists names)", c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := systems.Find(l.context(), args[0], systems.Options{Arch: arch, Tell: func(text string) { fmt.Fprintln(l.err, text) }})
			if err != nil {
				return usage("%v", err)
			}
			d, err := shown(s)
			if err != nil {
				return usage("%v", err)
			}
			if asJSON {
				return l.writeJSON(d, 0)
			}
			return l.printSystem(d)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write it as a document")
	c.Flags().StringVar(&arch, "arch", "", "what the machine that runs it is, amd64 or arm64; left out: this one's")
	return c
}

type systemEntry struct {
	Name   string       `json:"name"`
	About  string       `json:"about,omitempty"`
	File   string       `json:"file,omitempty"`
	Ranges []rangeEntry `json:"ranges,omitempty"`
	AtHand []string     `json:"atHand"`
	Error  string       `json:"error,omitempty"`
}

type rangeEntry struct {
	From       string `json:"from,omitempty"`
	Before     string `json:"before,omitempty"`
	Versions   string `json:"versions"`
	Daemon     bool   `json:"daemon"`
	Runtime    string `json:"runtime"`
	EC2        string `json:"ec2"`
	Metadata   string `json:"metadata"`
	Kubernetes string `json:"kubernetes"`
	Books      bool   `json:"books"`
}

func systemsDocument(list []systems.Listed) any {
	var d struct {
		Systems []systemEntry `json:"systems"`
	}
	for _, s := range list {
		e := systemEntry{Name: s.Name, AtHand: append([]string{}, s.AtHand...)}
		if s.Err != nil {
			e.Error = s.Err.Error()
		} else {
			e.About, e.File = s.Description.About, s.Description.File
			for i := range s.Description.Ranges {
				e.Ranges = append(e.Ranges, rangeOf(&s.Description.Ranges[i]))
			}
		}
		d.Systems = append(d.Systems, e)
	}
	return d
}

func rangeOf(g *systems.Range) rangeEntry {
	s := &g.System
	return rangeEntry{g.From, g.Before, g.String(), s.Daemon != nil, s.Runtime.API, s.EC2.By, s.Metadata.By, s.Kubernetes.By, s.Books}
}

func (l *cli) printSystems(list []systems.Listed) error {
	var rows [][]string
	for _, s := range list {
		if s.Err != nil {
			rows = append(rows, []string{s.Name, "", "", "", "", "", s.Err.Error()})
			continue
		}
		for i := range s.Description.Ranges {
			g := &s.Description.Ranges[i]
			e := rangeOf(g)
			daemon := "no daemon"
			if e.Daemon {
				daemon = "daemon"
			}
			if e.Books {
				daemon += ", with books"
			}
			rows = append(rows, []string{s.Name, e.Versions, daemon, e.EC2 + "/" + e.Metadata, e.Kubernetes, e.Runtime, atHand(s, g)})
		}
	}
	err := table(l.out, []column{{"SYSTEM", 18}, {"VERSIONS", 24}, {"WHAT", 12}, {"EC2/METADATA", 16}, {"KUBERNETES", 10}, {"RUNTIME", 12}, {"AT HAND", 16}}, rows)
	if err != nil {
		return err
	}
	rows = nil
	for _, s := range list {
		if s.Err == nil {
			rows = append(rows, []string{s.Name, s.Description.File, s.Description.About})
		}
	}
	if _, err := fmt.Fprintln(l.out); err != nil {
		return err
	}
	return table(l.out, []column{{"SYSTEM", 18}, {"DESCRIPTION", 34}, {"WHAT IT IS", 64}}, rows)
}

// atHand are the versions of a range that are there.
func atHand(s systems.Listed, g *systems.Range) string {
	var out []string
	for _, v := range s.AtHand {
		if g.Has(v) {
			out = append(out, v)
		}
	}
	if b := s.Description.Build; b != nil && b.Git {
		out = append(out, "commits of its repository")
	} else if b != nil {
		out = append(out, "any, built from source")
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

// systemDocument is a system as show prints it.
type systemDocument struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	About        string            `json:"about,omitempty"`
	Folder       string            `json:"folder"`
	Files        []fileDocument    `json:"files"`
	Mounts       map[string]string `json:"mounts,omitempty"`   // path in the container to path in the node
	Executes     []string          `json:"executes,omitempty"` // programs of its machine
	Kernel       []string          `json:"kernel,omitempty"`   // modules
	Sysctls      map[string]string `json:"sysctls,omitempty"`
	Prefixes     int               `json:"prefixes,omitempty"`
	DHCP         bool              `json:"dhcp,omitempty"`
	Conflist     *textDocument     `json:"conflist,omitempty"`
	Plugins      []string          `json:"plugins,omitempty"`
	Daemon       *daemonDocument   `json:"daemon,omitempty"`
	Runtime      string            `json:"runtime"`
	Metadata     string            `json:"metadata"`
	EC2          string            `json:"ec2"`
	Kubernetes   string            `json:"kubernetes"`
	Resources    []string          `json:"resources,omitempty"`
	Steps        []systems.Step    `json:"steps"`
	RollbackInto []systems.Step    `json:"rollback,omitempty"`
	Books        bool              `json:"books"`
	Notes        []string          `json:"notes,omitempty"`
}

type fileDocument struct {
	From string `json:"from"`
	To   string `json:"to"`
	Mode string `json:"mode"`
}

type textDocument struct {
	File  string `json:"file"`
	Words string `json:"words"`
}

type daemonDocument struct {
	Argv         []string          `json:"argv"`
	Entrypoint   []string          `json:"entrypoint,omitempty"` // what starts it
	Folder       string            `json:"folder"`
	Environment  map[string]string `json:"environment"`
	Settings     []string          `json:"settings,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"` // none: all
	Init         []commandDocument `json:"init,omitempty"`
	Serves       string            `json:"serves"`
	Stop         string            `json:"stop"`
}

type commandDocument struct {
	Argv        []string          `json:"argv"`
	Folder      string            `json:"folder"`
	Environment map[string]string `json:"environment"`
	Within      string            `json:"within"`
}

// shown is a system with its placeholders left as they are.
func shown(s *systems.System) (*systemDocument, error) {
	words := systems.Words{}
	for _, p := range systems.Placeholders {
		words[p.Name] = "${" + p.Name + "}"
	}
	env, err := s.Environment(words, nil)
	if err != nil {
		return nil, err
	}
	d := &systemDocument{Name: s.Name, Version: s.Version, About: s.About, Folder: s.Folder, Kernel: s.Kernel,
		Sysctls: s.Sysctls, Prefixes: s.Node.Prefixes, DHCP: s.Node.DHCP, Plugins: s.Plugins,
		Runtime:  strings.TrimSpace(s.Runtime.API + " " + s.Runtime.Socket),
		Metadata: s.Metadata.By + ", tokens " + s.Metadata.Tokens, EC2: s.EC2.By, Kubernetes: s.Kubernetes.By,
		Resources: s.Kubernetes.Resources, Steps: s.Upgrade.Steps, RollbackInto: s.Upgrade.Rollback, Books: s.Books,
		Notes: s.Notes}
	for _, n := range s.Needs() {
		d.Executes = append(d.Executes, n.Tool)
	}
	for _, f := range s.Files {
		d.Files = append(d.Files, fileDocument{f.From, f.To, fmt.Sprintf("%04o", f.Mode)})
	}
	for _, m := range s.AllMounts() {
		if d.Mounts == nil {
			d.Mounts = map[string]string{}
		}
		d.Mounts[m.Container] = m.Node
	}
	if s.Conflist.Name != "" {
		outline := s.Outline
		if s.Enters() {
			outline = s.Template
		}
		data, err := outline()
		if err != nil {
			return nil, err
		}
		d.Conflist = &textDocument{s.Conflist.To + "/" + s.Conflist.Name, strings.TrimSpace(string(data))}
	}
	if s.Daemon != nil {
		if d.Daemon, err = shownDaemon(s, words, env); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func shownDaemon(s *systems.System, words systems.Words, env map[string]string) (*daemonDocument, error) {
	argv, err := s.Argv(s.Daemon.Argv, words, env)
	if err != nil {
		return nil, err
	}
	q := s.Daemon.Serves
	serves := strings.TrimSpace(strings.Join([]string{q.TCP, q.Unix, q.HTTP}, ""))
	if q.GRPC {
		serves += ", gRPC health"
	}
	d := &daemonDocument{Argv: argv, Folder: s.Daemon.Folder, Environment: env, Settings: s.Daemon.Settings, Capabilities: s.Capabilities(),
		Serves: fmt.Sprintf("%s within %v", serves, q.Within), Stop: fmt.Sprintf("SIG%s, %v", s.Daemon.Stop.Signal, s.Daemon.Stop.Grace)}
	if s.Enters() {
		if d.Entrypoint, err = s.Argv(s.Daemon.Entrypoint.Argv, words, env); err != nil {
			return nil, err
		}
	}
	for _, c := range s.Daemon.Init {
		argv, err := s.Argv(c.Argv, words, env)
		if err != nil {
			return nil, err
		}
		own, err := s.InitEnvironment(c, words, env)
		if err != nil {
			return nil, err
		}
		d.Init = append(d.Init, commandDocument{argv, c.Folder, own, c.Within.String()})
	}
	return d, nil
}

func (l *cli) printSystem(d *systemDocument) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, in %s\n", d.Name, d.Version, d.Folder)
	if d.About != "" {
		fmt.Fprintln(&b, d.About)
	}
	for _, n := range d.Notes {
		fmt.Fprintln(&b, "note: "+n)
	}
	part := func(head string, lines ...string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", head)
		for _, line := range lines {
			fmt.Fprintln(&b, "  "+line)
		}
	}
	var files []string
	for _, f := range d.Files {
		files = append(files, fmt.Sprintf("%-20s %s, %s", f.From, f.To, f.Mode))
	}
	part("files, and where they go in a node", files...)
	part("the container's paths, and the node's", pairs(d.Mounts, " is ")...)
	if len(d.Executes) > 0 {
		part("of its machine it executes", strings.Join(d.Executes, ", "))
	}
	if len(d.Kernel) > 0 {
		part("of the kernel it needs", strings.ReplaceAll(strings.Join(d.Kernel, ", "), "/", " or "))
	}
	part("below /proc/sys", pairs(d.Sysctls, " = ")...)
	if d.DHCP {
		part("the node's further ENIs", "have their primary address, by DHCP")
	}
	if d.Prefixes > 0 {
		part("the node's first ENI", fmt.Sprintf("%d prefixes of 16 addresses, or as many as its type has room for", d.Prefixes))
	}
	if d.Conflist != nil {
		part(d.Conflist.File, strings.Split(d.Conflist.Words, "\n")...)
	}
	part("it finds", "EC2 by "+d.EC2, "metadata by "+d.Metadata, "Kubernetes by "+d.Kubernetes, "the runtime: "+d.Runtime)
	part("in Kubernetes it reads, beside nodes and pods", d.Resources...)
	if d.Daemon != nil {
		d.Daemon.print(part)
	}
	part("steps of an upgrade to it", strings.TrimSpace(fmt.Sprint(d.Steps)))
	if d.RollbackInto != nil {
		part("steps of a rollback to it", fmt.Sprint(d.RollbackInto))
	}
	_, err := l.out.Write([]byte(b.String()))
	return err
}

func (d *daemonDocument) print(part func(head string, lines ...string)) {
	for _, c := range d.Init {
		part("before it starts, within "+c.Within, append([]string{strings.Join(c.Argv, " ") + " (in " + c.Folder + ")"}, pairs(c.Environment, "=")...)...)
	}
	if len(d.Entrypoint) > 0 {
		part("the image's entrypoint, which installs plugins and configuration and starts the daemon", strings.Join(d.Entrypoint, " "))
	}
	part("the daemon", strings.Join(d.Argv, " ")+" (in "+d.Folder+")", "serves at "+d.Serves, "is told to end by "+d.Stop)
	part("its environment", pairs(d.Environment, "=")...)
	part("settings of a scenario that it knows", d.Settings...)
	if d.Capabilities == nil {
		part("its capabilities", "all: it is privileged")
	} else {
		part("its capabilities", d.Capabilities...)
	}
}

// pairs are the lines of a map, sorted.
func pairs(m map[string]string, between string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+between+m[k])
	}
	return out
}
