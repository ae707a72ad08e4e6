package systems

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	yamlfile "github.com/enilab/enilab/internal/strictyaml"
)

// field is a key of a description: what it is for stands in the table of docs/systems.md.
type field struct {
	key, form, doc string
	read           func(*yaml.Node)
	below          []field // of a mapping, or of each mapping of a list
}

// reader takes a description apart.
type reader struct{ *yamlfile.Reader }

// object reads a mapping of these fields.
func (r *reader) object(n *yaml.Node, what string, fields []field) yamlfile.Object {
	out := make([]yamlfile.Field, len(fields))
	for i, f := range fields {
		out[i] = yamlfile.Field{Key: f.key, Read: f.read}
	}
	return r.Object(n, what, out...)
}

// fields are the keys that a version's part of a description may have, and that the base has.
func (r *reader) fields(s *System) []field {
	return []field{
		listed(r, "files", "the binaries and other files that a node gets; a version's list replaces the base's", func(f *File) []field { return r.file(f) }, &s.Files),
		listed(r, "mounts", "paths of the daemon's container that are others of the node", func(m *Mount) []field {
			return []field{r.absolute("container", "in the container", &m.Container), r.absolute("node", "in the node", &m.Node)}
		}, &s.Mounts),
		r.executes(&s.Executes),
		r.texts("kernel", "modules", "what it needs of the kernel, as modules or built in; with / between several one will do", &s.Kernel, func(t string) string {
			if !isModule(t) {
				return "a kernel module's name such as xt_comment, or several with / between them"
			}
			return ""
		}),
		r.words("sysctls", "what is set below /proc/sys before anything starts", &s.Sysctls),
		r.nested("conflist", "the network configuration; without it, init steps or the daemon have to write one", r.conflist(&s.Conflist)),
		r.daemon(s),
		r.nested("runtime", "the container runtime's API that the daemon asks", []field{
			r.oneOf("api", "cri is runtime.v1", &s.Runtime.API, "cri", "cri-v1alpha2", "docker", "none"),
			r.text("socket", "where it looks for it: a path in the node, for docker ADDRESS:PORT", &s.Runtime.Socket),
		}),
		r.nested("metadata", "how instance metadata is found", []field{
			r.oneOf("by", "address is 169.254.169.254:80; endpoint is ${METADATA_URL} in its environment", &s.Metadata.By, "address", "endpoint"),
			r.oneOf("tokens", "whether the instance takes requests without a token", &s.Metadata.Tokens, "optional", "required"),
		}),
		r.nested("ec2", "how EC2 is found", []field{
			r.oneOf("by", "endpoint is ${EC2_URL} in its environment; name is EC2's real name, with a CA of the run's own in ${CA}", &s.EC2.By, "endpoint", "name", "none"),
			r.texts("role", "EC2's actions", "what the policy that its documentation asks for allows a node", &s.EC2.Role, nil),
		}),
		r.nested("kubernetes", "how the API server is found, and what is read there", []field{
			r.oneOf("by", "url is ${KUBERNETES_URL} in its environment, kubeconfig ${KUBECONFIG}; in-cluster is a service account in the node", &s.Kubernetes.By,
				"url", "in-cluster", "kubeconfig", "none"),
			r.texts("resources", "group/version/plural", "what it reads beside nodes and pods", &s.Kubernetes.Resources, func(t string) string {
				if strings.Count(t, "/") != 2 {
					return "group/version/plural, such as crd.k8s.amazonaws.com/v1alpha1/eniconfigs"
				}
				return ""
			}),
		}),
		r.nested("node", "what a node has before the system comes to it", []field{
			r.number("prefixes", "/28 prefixes that the node's first ENI has from its launch, at most: ${POD_RANGES}", 0, 15, &s.Node.Prefixes),
			r.flag("dhcp", "the machine gives each further interface its ENI's primary address, as a DHCP client does", &s.Node.DHCP),
		}),
		r.nested("upgrade", "how this version takes over from another", []field{
			r.steps("steps", "the order; the first start is the same without stop", &s.Upgrade.Steps),
			r.steps("rollback", "the order when the version before was a newer one; left out: steps", &s.Upgrade.Rollback),
			r.texts("replaces", "names", "other systems of which it takes over running nodes, and to which it gives them back", &s.Upgrade.Replaces, nil),
		}),
		r.get(s),
		r.flag("books", "it takes the laboratory's clock and streams its decisions: ours alone", &s.Books),
	}
}

func (r *reader) file(f *File) []field {
	return []field{
		r.inside("from", "in the version's folder", &f.From), r.absolute("to", "in the node", &f.To),
		r.mode(&f.Mode), r.flag("optional", "a version may lack it", &f.Optional), r.absolute("image", "in the version's image", &f.Image),
		r.duration("pause", "how long it waits in a node before it ends when it has failed; an entrypoint may ask it in a loop without a pause", &f.Pause),
	}
}

func (r *reader) conflist(c *Text) []field {
	return []field{
		r.text("name", "of the file", &c.Name),
		{key: "from", form: "a path", doc: "a file in the version's folder", read: func(n *yaml.Node) {
			c.Words = ""
			r.inside("from", "", &c.From).read(n)
		}},
		{key: "words", form: "text", doc: "the configuration itself, with placeholders", read: func(n *yaml.Node) {
			c.From = ""
			r.expandable("words", "", &c.Words).read(n)
		}},
		r.absolute("to", "folder in the node; left out: "+ConfigFolder, &c.To),
		r.absolute("image", "in the version's image", &c.Image),
		r.words("replace", "words of the file, and what stands for them", &c.Replace),
		r.texts("optional", "plugins", "taken out of the list when their binaries are not there; the first plugin never is", &c.Optional, nil),
	}
}

// first is a field before whose value something is done.
func first(f field, do func()) field {
	read := f.read
	f.read = func(n *yaml.Node) {
		do()
		read(n)
	}
	return f
}

// daemon is nil in a System until the key is there.
func (r *reader) daemon(s *System) field {
	d := s.Daemon
	if d == nil {
		d = &Daemon{}
	}
	return first(r.nested("daemon", "the process on every node; without it, a plugin alone", []field{
		r.expandables("argv", "its command line; the first word is a path in the node", &d.Argv),
		r.absolute("folder", "its working folder", &d.Folder),
		r.absolute("log", "file in the node with what it says, beside its output", &d.Log),
		r.words("environment", "over the manifest's", &d.Environment),
		r.words("defaults", "its environment where there is no manifest", &d.Defaults),
		r.inside("manifest", "a Kubernetes manifest in the version's folder, with a DaemonSet", &d.Manifest),
		r.text("container", "of the DaemonSet, whose environment, mounts and capabilities are taken", &d.Container),
		r.texts("settings", "variables", "the scenario's settings that it knows", &d.Settings, nil),
		r.texts("capabilities", "CAP_…", "the only ones that it gets; left out: the manifest's, or all", &d.Capabilities, func(t string) string {
			if !strings.HasPrefix(t, "CAP_") || strings.ToUpper(t) != t {
				return "a name such as CAP_NET_ADMIN"
			}
			return ""
		}),
		r.entrypoint(d),
		listed(r, "init", "commands that run to their end before each start", func(c *Command) []field {
			return []field{r.expandables("argv", "its command line", &c.Argv), r.absolute("folder", "its working folder", &c.Folder),
				r.words("environment", "over the container's", &c.Environment),
				r.text("container", "of the manifest's init containers, whose environment is taken", &c.Container),
				r.duration("within", "how long it may take", &c.Within), r.flag("optional", "left out where its file, or one of needs, is not there", &c.Optional), r.needs(&c.Needs), r.executes(&c.Executes)}
		}, &d.Init),
		r.serves(&d.Serves),
		r.nested("stop", "how it is told to end", []field{
			r.oneOf("signal", "then SIGKILL", &d.Stop.Signal, "TERM", "INT", "QUIT", "HUP", "KILL"),
			r.duration("grace", "how long it may take; left out: the manifest's, or 30 s", &d.Stop.Grace),
		}),
	}), func() { s.Daemon = d })
}

// get is nil in a System until the key is there.
func (r *reader) get(s *System) field {
	g := s.Get
	if g == nil {
		g = &Get{}
	}
	below := []field{
		{key: "image", form: "text", doc: "the reference of its image, with ${VERSION} in it", read: func(n *yaml.Node) {
			r.Scalar(n, "image", "a reference such as HOST/NAME:v${VERSION}", func(s string) bool {
				g.Image = s
				return strings.Contains(s, "/") && strings.Count(s, "${") == 1 && strings.Contains(s, "${VERSION}") && !strings.ContainsAny(s, " \t\n")
			})
		}},
		r.module(&g.Module), r.packages(&g.Packages),
		r.inside("makefile", "a file of the sources of which the line LDFLAGS says with what a release is linked", &g.Makefile),
		listed(r, "files", "what is copied out of the sources; of several for one name the first that is there", func(f *Source) []field {
			return []field{
				{key: "from", form: "path", doc: "below the module; ${MINOR} is 1.23 for 1.23.1", read: func(n *yaml.Node) {
					r.Scalar(n, "from", "a path inside the sources, such as misc/10-aws.conflist", func(s string) bool {
						f.From = s
						return localPath(strings.ReplaceAll(s, "${MINOR}", "1.0"))
					})
				}},
				r.inside("to", "in the version's folder", &f.To), r.flag("optional", "a version may lack it", &f.Optional)}
		}, &g.Files),
	}
	return first(r.nested("get", "where enilab systems get has a version from: its image, or sources that it is built of", below),
		func() { s.Get = g })
}

// executes is a list of programs.
func (r *reader) executes(to *[]string) field {
	return r.texts("executes", "names", "programs of its machine that are executed; looked for before anything starts", to, func(t string) string {
		if !isTool(t) {
			return "a program's name, such as iptables"
		}
		return ""
	})
}

// needs is a list of files.
func (r *reader) needs(to *[]string) field {
	return r.texts("needs", "names", "files of the version's folder that it fails without", to, func(t string) string {
		if !localPath(t) {
			return "a path inside the version's folder"
		}
		return ""
	})
}

// entrypoint is nil in a Daemon until the key is there.
func (r *reader) entrypoint(d *Daemon) field {
	e := d.Entrypoint
	if e == nil {
		e = &Entrypoint{}
	}
	return first(r.nested("entrypoint",
		"what its image runs: it starts the daemon, installs plugins and configuration itself, and runs where its files are there",
		[]field{r.expandables("argv", "its command line", &e.Argv), r.needs(&e.Needs), r.executes(&e.Executes)},
	), func() { d.Entrypoint = e })
}

// serves: one question takes the place of another.
func (r *reader) serves(s *Serves) field {
	ask := func(f field, clear ...*string) field {
		return first(f, func() {
			for _, c := range clear {
				*c = ""
			}
		})
	}
	below := []field{
		ask(r.text("tcp", "ADDRESS:PORT that takes a connection", &s.TCP), &s.Unix, &s.HTTP),
		ask(r.absolute("unix", "a socket that takes one", &s.Unix), &s.TCP, &s.HTTP),
		ask(r.text("http", "a URL that answers 200", &s.HTTP), &s.TCP, &s.Unix),
		r.flag("grpc", "with tcp or unix: grpc.health.v1 has to say SERVING", &s.GRPC),
		r.duration("within", "from its start; later is a violation", &s.Within),
	}
	f := r.nested("serves", "how the daemon is known to take ADDs: one of tcp, unix and http", below)
	f.read = func(n *yaml.Node) {
		o := r.object(n, "serves", below)
		var asked []string
		for _, k := range []string{"tcp", "unix", "http"} {
			if _, ok := o.Keys[k]; ok {
				asked = append(asked, k)
			}
		}
		if len(asked) > 1 {
			r.Add(o.At(asked[1]), "keep one of them", "serves has %s", strings.Join(asked, " and "))
		}
	}
	return f
}

func (r *reader) nested(key, doc string, below []field) field {
	return field{key: key, form: "keys", doc: doc, below: below, read: func(n *yaml.Node) { r.object(n, key, below) }}
}

// listed is a list of mappings: it takes the place of what was there.
func listed[T any](r *reader, key, doc string, below func(*T) []field, to *[]T) field {
	return field{key: key, form: "list", doc: doc, below: below(new(T)), read: func(n *yaml.Node) {
		*to = nil
		r.List(n, key, func(n *yaml.Node) {
			var v T
			r.object(n, "one of "+key, below(&v))
			*to = append(*to, v)
		})
	}}
}

// maxText bounds a text of a description: a file of MaxFile bytes holds less anyway.
const maxText = 64 << 10

func (r *reader) text(key, doc string, to *string) field {
	return field{key: key, form: "text", doc: doc, read: func(n *yaml.Node) { r.Text(key, to).Read(n) }}
}

// expandable is a text in which placeholders stand.
func (r *reader) expandable(key, doc string, to *string) field {
	return field{key: key, form: "text", doc: doc, read: func(n *yaml.Node) {
		r.Scalar(n, key, fmt.Sprintf("a text of up to %d characters", maxText), func(s string) bool {
			*to = s
			r.placeholders(n)
			return len(s) <= maxText
		})
	}}
}

// placeholders refuses unknown ones.
func (r *reader) placeholders(n *yaml.Node) {
	if err := check(n.Value); err != nil {
		r.Add(yamlfile.PlaceOf(n), err.hint, "%s", err.text)
	}
}

func (r *reader) expandables(key, doc string, to *[]string) field {
	return field{key: key, form: "list", doc: doc, read: func(n *yaml.Node) {
		*to = nil
		r.List(n, key, func(n *yaml.Node) {
			var s string
			r.expandable(key, "", &s).read(n)
			*to = append(*to, s)
		})
	}}
}

// texts is a list of words: it takes the place of what was there. form says what a word should be, if it is not.
func (r *reader) texts(key, what, doc string, to *[]string, form func(string) string) field {
	return field{key: key, form: "list of " + what, doc: doc, read: func(n *yaml.Node) {
		*to = []string{}
		r.List(n, key, func(n *yaml.Node) {
			var s string
			r.Text(key, &s).Read(n)
			if slices.Contains(*to, s) {
				r.Add(yamlfile.PlaceOf(n), "keep one", "%s names %q twice", key, s)
			} else if form != nil && s != "" && form(s) != "" {
				r.Add(yamlfile.PlaceOf(n), "", "%s: expected %s, found %q", key, form(s), yamlfile.Shortened(s))
			}
			*to = append(*to, s)
		})
	}}
}

// words is a mapping of names to texts with placeholders, over what was there; an empty one takes a name away.
func (r *reader) words(key, doc string, to *map[string]string) field {
	return field{key: key, form: "names and texts", doc: doc, read: func(n *yaml.Node) {
		m := maps.Clone(*to)
		if m == nil {
			m = map[string]string{}
		}
		r.Mapping(n, key, func(k, v *yaml.Node) {
			if v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Anchor == "" {
				delete(m, k.Value)
				return
			}
			var s string
			r.expandable(k.Value, "", &s).read(v)
			if k.Value == "" || strings.ContainsAny(k.Value, "=\x00") || strings.Contains(s, "\x00") {
				r.Add(yamlfile.PlaceOf(k), "", "%s: expected a name without =, and no null character, found %s", key, yamlfile.Found(k))
				return
			}
			m[k.Value] = s
		})
		*to = m
	}}
}

func (r *reader) flag(key, doc string, to *bool) field {
	return field{key: key, form: "true or false", doc: doc, read: r.Flag(key, to).Read}
}

func (r *reader) number(key, doc string, low, high int, to *int) field {
	return field{key: key, form: "number", doc: doc, read: r.Number(key, low, high, to).Read}
}

func (r *reader) duration(key, doc string, to *time.Duration) field {
	return field{key: key, form: "duration", doc: doc, read: func(n *yaml.Node) {
		r.Scalar(n, key, "a duration from 1ms to 1h, such as 5s", func(s string) bool {
			return yamlfile.ParseDuration(s, to) && *to >= time.Millisecond && *to <= time.Hour
		})
	}}
}

func (r *reader) oneOf(key, doc string, to *string, words ...string) field {
	return field{key: key, form: strings.Join(words, ", "), doc: doc, read: func(n *yaml.Node) {
		if !r.Is(n, yaml.ScalarNode, key, "one of "+strings.Join(words, ", ")) {
			return
		}
		if !slices.Contains(words, n.Value) {
			r.Add(yamlfile.PlaceOf(n), yamlfile.Meant(n.Value, words), "%s cannot be %s", key, yamlfile.Found(n))
			return
		}
		*to = n.Value
	}}
}

// absolute is a path in a node.
func (r *reader) absolute(key, doc string, to *string) field {
	return field{key: key, form: "absolute path", doc: doc, read: func(n *yaml.Node) {
		r.Scalar(n, key, "an absolute path, such as /opt/cni/bin/ptp, without . and ..", func(s string) bool {
			*to = s
			return strings.HasPrefix(s, "/") && s != "/" && path.Clean(s) == s && len(s) < 255 && !strings.ContainsAny(s, "\x00\n$")
		})
	}}
}

// inside is a path below the version's folder.
func (r *reader) inside(key, doc string, to *string) field {
	return field{key: key, form: "path", doc: doc, read: func(n *yaml.Node) {
		r.Scalar(n, key, "a path inside the version's folder, such as aws-cni, without ..", func(s string) bool {
			*to = s
			return localPath(s)
		})
	}}
}

// localPath says whether a path stays in its folder, and is written as short as it can be.
func localPath(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "../") && path.Clean(s) == s && len(s) < 255 &&
		!strings.ContainsAny(s, "\x00\n\\$")
}

func (r *reader) mode(to *uint32) field {
	return field{key: "mode", form: "octal", doc: "permission bits; left out: 0755", read: func(n *yaml.Node) {
		r.Scalar(n, "mode", "permission bits from 0400 to 0777, such as 0644", func(s string) bool {
			v, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
			*to = uint32(v)
			return err == nil && v >= 0o400 && v <= 0o777
		})
	}}
}

func (r *reader) steps(key, doc string, to *[]Step) field {
	known := []string{string(StepStop), string(StepFiles), string(StepPlugins), string(StepInit), string(StepStart), string(StepServes), string(StepConflist)}
	return field{key: key, form: "list of " + strings.Join(known, ", "), doc: doc, read: func(n *yaml.Node) {
		*to = nil
		r.List(n, key, func(n *yaml.Node) {
			var s string
			r.oneOf("a step", "", &s, known...).read(n)
			if s != "" && slices.Contains(*to, Step(s)) {
				r.Add(yamlfile.PlaceOf(n), "keep one", "%s has %s twice", key, s)
			}
			*to = append(*to, Step(s))
		})
	}}
}
