package systems

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/semver"

	yamlfile "github.com/enilab/enilab/internal/strictyaml"
)

// MaxFile is the largest description that is read, in bytes: ten times the largest of ours.
const MaxFile = 256 << 10

// Description is what a file NAME.yaml says: a system in all of its versions.
type Description struct {
	Name, About string
	// File is what the description was read from.
	File   string
	Build  *Build
	Ranges []Range
}

// Range is a span of versions that are described alike.
type Range struct {
	From, Before string // MAJOR.MINOR.PATCH; empty: without an end
	System       System // without Version, Folder and what is found there
	place        yamlfile.Place
}

// Build is how binaries are built, where no release has any.
type Build struct {
	Module   string            // of Go
	Packages map[string]string // file of the version's folder to package below the module
	Git      bool              // from a commit of the repository that the working folder is in, else from the Go module proxy
}

// String is the range in words.
func (g *Range) String() string {
	switch {
	case g.From == "" && g.Before == "":
		return "all versions"
	case g.Before == "":
		return g.From + " and newer"
	case g.From == "":
		return "before " + g.Before
	}
	return g.From + " to before " + g.Before
}

// Has says whether a version, MAJOR.MINOR.PATCH, is in the range. A build or a candidate of a version is where that version is: 1.23.0-eksbuild.1, as
// Amazon EKS names what it makes of 1.23.0, is before it in the order of semantic versioning, and does what 1.23.0 does.
func (g *Range) Has(version string) bool {
	return (g.From == "" || !precedes(version, g.From)) && (g.Before == "" || precedes(version, g.Before))
}

// precedes says whether a version is older than another, of which it is neither a build nor a candidate.
func precedes(version, other string) bool {
	release, _, _ := strings.Cut(version, "-")
	return release != other && semver.Compare("v"+version, "v"+other) < 0
}

// Parse reads a description. The error is a strictyaml.Errors.
func Parse(file string, data []byte) (*Description, error) {
	r := &reader{yamlfile.NewReader(file)}
	d := &Description{File: file}
	if n := r.Tree(data, yamlfile.Form{What: "a description of a system", Max: MaxFile, Begin: "begin with the example of docs/systems.md"}); n != nil {
		r.description(n, d)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

func (r *reader) head(d *Description, ranges **yaml.Node) []field {
	return []field{
		{key: "name", form: "word", doc: "what follows --cni", read: func(n *yaml.Node) {
			r.Scalar(n, "name", "a word of small letters, digits and dashes, up to 60", func(s string) bool {
				d.Name = s
				return isName(s)
			})
		}},
		r.text("about", "a sentence about it", &d.About),
		r.build(d),
		{key: "versions", form: "list", doc: "ranges of versions that differ from the base; without them, it is of every version", read: func(n *yaml.Node) { *ranges = n }},
	}
}

func isName(s string) bool {
	return s != "" && len(s) <= 60 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-'
}

func (r *reader) build(d *Description) field {
	var b Build
	below := []field{
		r.module(&b.Module),
		r.packages(&b.Packages),
		r.flag("git", "from a commit of the repository that the working folder is in", &b.Git),
	}
	f := r.nested("build", "how its binaries are built where no folder has them", below)
	f.read = func(n *yaml.Node) {
		o := r.object(n, "build", below)
		r.Need(n, &o, "build", "module", "packages")
		d.Build = &b
	}
	return f
}

func (r *reader) module(to *string) field {
	return field{key: "module", form: "path", doc: "a Go module, which the Go module proxy has", read: func(n *yaml.Node) {
		r.Scalar(n, "module", "a module's path, such as github.com/containernetworking/plugins", func(s string) bool {
			*to = s
			return modulePath(s)
		})
	}}
}

func (r *reader) packages(to *map[string]string) field {
	return field{key: "packages", form: "names and paths", doc: "files of the version's folder, and the packages below the module that they are built from", read: func(n *yaml.Node) {
		*to = map[string]string{}
		r.Mapping(n, "packages", func(k, v *yaml.Node) {
			var p string
			if p = v.Value; v.Kind != yaml.ScalarNode || p != "." { // the module's own folder may be one
				r.inside("a package", "", &p).read(v)
			}
			if !localPath(k.Value) {
				r.Add(yamlfile.PlaceOf(k), "", "packages: expected a file's name, found %s", yamlfile.Found(k))
			}
			(*to)[k.Value] = p
		})
	}}
}

func (r *reader) span(g *Range) []field {
	version := func(key, doc string, to *string) field {
		return field{key: key, form: "version", doc: doc, read: func(n *yaml.Node) {
			r.Scalar(n, key, "a version such as 1.9.0", func(s string) bool {
				*to = s
				return isVersion(s)
			})
		}}
	}
	return []field{version("from", "the first version of the range", &g.From), version("before", "the first version after it", &g.Before)}
}

// isVersion says whether a text is MAJOR.MINOR.PATCH, perhaps with a pre-release such as -rc1.
func isVersion(s string) bool {
	return semver.IsValid("v"+s) && semver.Canonical("v"+s) == "v"+s
}

func (r *reader) description(n *yaml.Node, d *Description) {
	var ranges *yaml.Node
	base := System{}
	o := r.object(n, "a description", append(r.head(d, &ranges), r.fields(&base)...))
	r.Need(n, &o, "a description", "name")
	if ranges == nil {
		d.Ranges = []Range{{System: base, place: o.Begin}}
	} else {
		r.List(ranges, "versions", func(n *yaml.Node) {
			g := Range{System: base.clone(), place: yamlfile.PlaceOf(n)}
			r.object(n, "a range of versions", append(r.span(&g), r.fields(&g.System)...))
			d.Ranges = append(d.Ranges, g)
		})
		if len(d.Ranges) == 0 && ranges.Kind == yaml.SequenceNode {
			r.Add(o.At("versions"), "leave the key out, or give a range such as {from: 1.0.0}", "versions is an empty list")
		}
	}
	if r.Failed() {
		return
	}
	for i := range d.Ranges {
		g := &d.Ranges[i]
		g.System.Name, g.System.About = d.Name, d.About
		r.check(g)
	}
	r.order(d.Ranges)
}

// order refuses ranges that are empty or have versions in common, and sorts them.
func (r *reader) order(ranges []Range) {
	for i := range ranges {
		if g := &ranges[i]; g.From != "" && g.Before != "" && semver.Compare("v"+g.From, "v"+g.Before) >= 0 {
			r.Add(g.place, "before is the first version that is not in it", "the range from %s before %s is empty", g.From, g.Before)
			return
		}
	}
	slices.SortStableFunc(ranges, func(a, b Range) int { return compareFrom(a.From, b.From) })
	for i := range ranges[1:] {
		a, b := &ranges[i], &ranges[i+1]
		if a.Before == "" || b.From == "" || semver.Compare("v"+a.Before, "v"+b.From) > 0 {
			at := b.place
			if a.place.Line > at.Line {
				at = a.place
			}
			r.Add(at, "end one where the other begins", "the ranges %s (line %d) and %s (line %d) overlap", a, a.place.Line, b, b.place.Line)
		}
	}
}

func compareFrom(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return -1
	case b == "":
		return 1
	}
	return semver.Compare("v"+a, "v"+b)
}

// check judges what no mapping shows by itself, and fills in what is left out.
func (r *reader) check(g *Range) {
	s := &g.System
	say := func(hint, format string, args ...any) {
		r.Add(g.place, hint, "%s: %s", g, fmt.Sprintf(format, args...))
	}
	to := map[string]string{}
	for _, f := range s.Files {
		if f.From == "" || f.To == "" {
			say("write {from: NAME, to: /PATH}", "one of the files has no from or no to")
			continue
		}
		if other, twice := to[f.To]; twice {
			say("give one of them another to", "%s and %s both go to %s", other, f.From, f.To)
		}
		to[f.To] = f.From
	}
	for _, m := range s.Mounts {
		if m.Container == "" || m.Node == "" {
			say("write {container: /PATH, node: /PATH}", "one of the mounts has no container or no node")
		}
	}
	if g := s.Get; g != nil {
		switch {
		case g.Image == "" && g.Module == "":
			say("see docs/systems.md", "get needs one of the keys image and module")
		case g.Module != "" && len(g.Packages) == 0:
			say("", "get has a module, and needs the key packages")
		case g.Module == "" && (len(g.Packages) > 0 || len(g.Files) > 0 || g.Makefile != ""):
			say("", "get has packages, files or a makefile, and needs the key module")
		}
		if slices.ContainsFunc(g.Files, func(f Source) bool { return f.From == "" || f.To == "" }) {
			say("write {from: PATH, to: NAME}", "one of get's files has no from or no to")
		}
	}
	c := &s.Conflist
	if given := c.From != "" || c.Words != ""; given && c.Name == "" {
		say("", "the conflist needs the key name")
	} else if !given && c.Name != "" {
		say("", "the conflist needs one of the keys from and words")
	} else if strings.Contains(c.Name, "/") {
		say("", "the conflist's name %q has a slash: to is its folder", c.Name)
	}
	defaults(s)
	if s.Daemon == nil {
		if c.Name == "" {
			say("see docs/systems.md", "there is neither a daemon nor a conflist")
		}
		return
	}
	r.checkDaemon(s, say)
}

func (r *reader) checkDaemon(s *System, say func(hint, format string, args ...any)) {
	d := s.Daemon
	switch {
	case len(d.Argv) == 0:
		say("", "the daemon needs the key argv")
	case !strings.HasPrefix(d.Argv[0], "/"):
		say("it has to be the to of a file", "the daemon's argv begins with %q, which is no absolute path", d.Argv[0])
	}
	if q := d.Serves; q.TCP == "" && q.Unix == "" && q.HTTP == "" {
		say("one of tcp, unix and http", "the daemon does not say how it is known to serve")
	} else if q.GRPC && q.HTTP != "" {
		say("grpc goes with tcp or unix", "serves has http and grpc")
	}
	for _, c := range d.Init {
		if len(c.Argv) == 0 || !strings.HasPrefix(c.Argv[0], "/") {
			say("", "an init step's argv has to begin with an absolute path")
		}
	}
	if e := d.Entrypoint; e != nil && (len(e.Argv) == 0 || !strings.HasPrefix(e.Argv[0], "/")) {
		say("it has to be the to of a file", "the entrypoint's argv has to begin with an absolute path")
	}
	if d.Manifest == "" && d.Container != "" {
		say("name the manifest that has it", "the daemon has a container and no manifest")
	} else if d.Manifest != "" && d.Container == "" {
		say("name the container of its DaemonSet", "the daemon has a manifest and no container")
	}
	if a := s.Runtime.API; a != "none" && s.Runtime.Socket == "" {
		say("", "the runtime's API is %s, and there is no socket", a)
	}
	for _, steps := range [][]Step{s.Upgrade.Steps, s.Upgrade.Rollback} {
		if steps != nil && !slices.Contains(steps, StepStart) {
			say("", "an upgrade's steps have no start")
		}
	}
}

// defaults fills in what a description leaves out.
func defaults(s *System) {
	or := func(to *string, v string) {
		if *to == "" {
			*to = v
		}
	}
	or(&s.Runtime.API, "none")
	or(&s.Metadata.By, "address")
	or(&s.Metadata.Tokens, "optional")
	or(&s.EC2.By, "none")
	or(&s.Kubernetes.By, "none")
	if s.Conflist.Name != "" {
		or(&s.Conflist.To, ConfigFolder)
	}
	for i := range s.Files {
		s.Files[i].Mode = cmp.Or(s.Files[i].Mode, 0o755)
	}
	if s.Upgrade.Steps == nil {
		s.Upgrade.Steps = []Step{StepStop, StepFiles, StepInit, StepPlugins, StepStart, StepServes, StepConflist}
		if s.Daemon == nil {
			s.Upgrade.Steps = []Step{StepFiles, StepPlugins, StepConflist}
		}
	}
	if d := s.Daemon; d != nil {
		or(&d.Stop.Signal, "TERM")
		or(&d.Folder, "/")
		d.Serves.Within = cmp.Or(d.Serves.Within, longServe)
		for i := range d.Init {
			d.Init[i].Within = cmp.Or(d.Init[i].Within, longInit)
			or(&d.Init[i].Folder, "/")
		}
	}
}

// clone shares nothing that a range's keys would change in place.
func (s *System) clone() System {
	out := *s
	out.Files, out.Mounts = slices.Clone(s.Files), slices.Clone(s.Mounts)
	out.Sysctls, out.Conflist.Replace = maps.Clone(s.Sysctls), maps.Clone(s.Conflist.Replace)
	out.Executes, out.Kernel = slices.Clone(s.Executes), slices.Clone(s.Kernel)
	out.Plugins, out.Notes = slices.Clone(s.Plugins), slices.Clone(s.Notes)
	out.Given = slices.Clone(s.Given)
	if s.Get != nil {
		g := *s.Get
		g.Packages, g.Files = maps.Clone(g.Packages), slices.Clone(g.Files)
		out.Get = &g
	}
	if s.Daemon != nil {
		d := *s.Daemon
		d.Argv, d.Settings, d.Capabilities, d.Init = slices.Clone(d.Argv), slices.Clone(d.Settings), slices.Clone(d.Capabilities), slices.Clone(d.Init)
		if d.Entrypoint != nil {
			e := *d.Entrypoint
			d.Entrypoint = &e
		}
		d.Environment, d.Defaults = maps.Clone(d.Environment), maps.Clone(d.Defaults)
		out.Daemon = &d
	}
	return out
}

// Of is the description of a version, without its files.
func (d *Description) Of(version string) (*System, error) {
	if len(d.Ranges) == 1 && d.Ranges[0].From == "" && d.Ranges[0].Before == "" {
		s := d.Ranges[0].System.clone()
		s.Version = version
		return &s, nil
	}
	if !isVersion(version) {
		return nil, fmt.Errorf("%s: the version %q has not the form MAJOR.MINOR.PATCH: say it, as %s@1.2.3=WHERE", d.Name, version, d.Name)
	}
	for i := range d.Ranges {
		g := &d.Ranges[i]
		if g.Has(version) {
			s := g.System.clone()
			s.Version = version
			return &s, nil
		}
	}
	names := make([]string, len(d.Ranges))
	for i := range d.Ranges {
		names[i] = d.Ranges[i].String()
	}
	return nil, fmt.Errorf("%s: version %s is in no range of %s, which has %s (add a range to a copy of it: docs/systems.md)", d.Name, version, d.File, strings.Join(names, "; "))
}

// What a description leaves out: a daemon serves within what kubelet's readiness would take to give up on it, and init steps end.
const (
	longServe = 2 * time.Minute
	longInit  = time.Minute
	longStop  = 30 * time.Second // kubelet's terminationGracePeriodSeconds
)

// modulePath says whether a text can be a module's path: the go command judges the rest.
func modulePath(s string) bool {
	return len(s) < 200 && strings.Contains(s, ".") && strings.Contains(s, "/") && localPath(s) && !strings.HasPrefix(s, "-") && !strings.ContainsAny(s, "@ \t")
}
