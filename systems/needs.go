package systems

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Need is a program of its machine that a system executes.
type Need struct {
	Tool string // its name in PATH
	By   string // who executes it, such as amazon-vpc-cni-k8s 1.23.0
}

// Needs are the programs that the system executes on a machine, sorted by name, each once.
func (s *System) Needs() []Need {
	by := map[string]string{}
	for _, tool := range s.Executes {
		by[tool] = s.Name + " " + s.Version
	}
	also := func(argv, executes []string) {
		for _, tool := range executes {
			if by[tool] == "" {
				by[tool] = fmt.Sprintf("%s %s's %s", s.Name, s.Version, path.Base(argv[0]))
			}
		}
	}
	if s.Enters() && s.Root == "" { // what runs in an image's root executes the image's programs
		also(s.Daemon.Entrypoint.Argv, s.Daemon.Entrypoint.Executes)
		for _, f := range s.Files {
			if f.Pause > 0 {
				also([]string{f.To}, []string{"sh", "sleep"}) // see sim/netns/node, Copy
			}
		}
	}
	if s.Daemon != nil && s.Root == "" {
		for _, c := range s.Daemon.Init {
			also(c.Argv, c.Executes)
		}
	}
	var out []Need
	for _, tool := range slices.Sorted(maps.Keys(by)) {
		out = append(out, Need{tool, by[tool]})
	}
	return out
}

// Missing says in a sentence which of the needs a machine has not, and how to get them on Debian; empty: it has all. machine is its name in the
// sentence.
func Missing(needs []Need, machine string, has func(tool string) bool) string {
	tools := map[string][]string{}
	var order, packages []string
	for _, n := range needs {
		if has(n.Tool) || slices.Contains(tools[n.By], n.Tool) {
			continue
		}
		if tools[n.By] == nil {
			order = append(order, n.By)
		}
		tools[n.By] = append(tools[n.By], n.Tool)
		p := Package(n.Tool)
		if p == "" {
			p = "the package that has " + n.Tool
		}
		if !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	if len(order) == 0 {
		return ""
	}
	parts := make([]string, len(order))
	for i, by := range order {
		parts[i] = fmt.Sprintf("%s executes %s", by, joined(tools[by]))
	}
	return fmt.Sprintf("%s, which %s has not: apt-get install %s", strings.Join(parts, ", and "), machine, strings.Join(packages, " "))
}

// joined is words as a sentence has them.
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// MissingModules says in a sentence what a system needs of a kernel that it has not; empty: nothing. A need such as "nft_compat/ip_tables" is one of several.
func (s *System) MissingModules(kernel string, has func(module string) bool) string {
	var missing []string
	for _, need := range s.Kernel {
		if !slices.ContainsFunc(strings.Split(need, "/"), has) {
			missing = append(missing, strings.ReplaceAll(need, "/", " or "))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s needs %s of the kernel, which %s has neither built in nor as modules: take another kernel (enilab vm kernels)",
		s.Name, s.Version, joined(missing), kernel)
}

// Modules are all modules that the system's kernel needs name, each once.
func (s *System) Modules() (out []string) {
	for _, need := range s.Kernel {
		for _, m := range strings.Split(need, "/") {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// debian are the packages of Debian 12 with the tools that CNIs and the scripts of their images execute.
var debian = map[string][]string{
	"coreutils": {"basename", "cat", "chmod", "chown", "cp", "cut", "date", "dirname", "env", "head", "install", "ln", "ls", "mkdir", "mv", "rm", "sleep", "sort",
		"tail", "tee", "test", "touch", "tr", "true", "uname", "wc"},
	"iptables":     {"ip6tables", "ip6tables-restore", "ip6tables-save", "iptables", "iptables-restore", "iptables-save"},
	"iproute2":     {"bridge", "ip", "ss", "tc"},
	"procps":       {"pgrep", "pkill", "ps", "sysctl"},
	"mawk":         {"awk"},
	"bash":         {"bash"},
	"dash":         {"sh"},
	"conntrack":    {"conntrack"},
	"curl":         {"curl"},
	"ethtool":      {"ethtool"},
	"findutils":    {"find", "xargs"},
	"grep":         {"grep"},
	"ipset":        {"ipset"},
	"ipvsadm":      {"ipvsadm"},
	"jq":           {"jq"},
	"kmod":         {"lsmod", "modprobe"},
	"mount":        {"mount", "umount"},
	"nftables":     {"nft"},
	"sed":          {"sed"},
	"util-linux":   {"flock", "nsenter", "unshare"},
	"wireguard":    {"wg"},
	"openssl":      {"openssl"},
	"iputils-ping": {"ping"},
}

// Package is the package of Debian that has a tool, empty where it is not known.
func Package(tool string) string {
	for name, tools := range debian { // each tool is in one of them
		if slices.Contains(tools, tool) {
			return name
		}
	}
	return ""
}

// isTool says whether a text can be a program's name in PATH.
func isTool(s string) bool {
	return s != "" && len(s) <= 60 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+") == "" && s != "." && s != ".."
}

// isModule says whether a text is a kernel module's name, or several of which one will do.
func isModule(s string) bool {
	for _, m := range strings.Split(s, "/") {
		if m == "" || len(m) > 60 || strings.Trim(m, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return false
		}
	}
	return true
}
