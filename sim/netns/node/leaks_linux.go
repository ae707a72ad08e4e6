package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/interference"
)

func (h *helper) leaks(none) (Inventory, error) {
	var i Inventory
	var errs [7]error
	i.Links, errs[0] = h.links()
	i.Rules, errs[1] = h.rules()
	i.Routes, errs[2] = h.routes()
	i.Tables, errs[3] = tables()
	i.Mounts, errs[4] = mounts()
	i.Processes, errs[5] = processes()
	i.Files, errs[6] = files("/run/aws-node", "/run/netns", "/var/lib/aws-node", "/var/lib/cni")
	i.Namespaces = h.namespaces()
	return i, errors.Join(errs[:]...)
}

func (k *network) links() ([]string, error) {
	list, err := interference.Retried(k.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	var out []string
	for _, l := range list {
		text := l.Attrs().Name + " " + l.Type()
		if l.Attrs().Alias != "" {
			text += " " + strconv.Quote(l.Attrs().Alias)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out, nil
}

func (k *network) rules() ([]string, error) {
	list, err := interference.Retried(func() ([]netlink.Rule, error) { return k.nl.RuleList(unix.AF_INET) })
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	var out []string
	for _, r := range list {
		if r.Protocol == unix.RTPROT_KERNEL {
			continue
		}
		text := strconv.Itoa(r.Priority)
		if r.Src != nil {
			text += " from " + r.Src.String()
		}
		if r.Dst != nil {
			text += " to " + r.Dst.String()
		}
		if r.Mark != 0 {
			text += fmt.Sprintf(" fwmark %#x", r.Mark)
		}
		out = append(out, text+" lookup "+strconv.Itoa(r.Table))
	}
	slices.Sort(out)
	return out, nil
}

func (k *network) routes() ([]string, error) {
	list, err := interference.Retried(func() ([]netlink.Route, error) {
		return k.nl.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	var out []string
	for _, r := range list {
		if r.Table == unix.RT_TABLE_LOCAL {
			continue
		}
		text := "table " + strconv.Itoa(r.Table) + " default"
		if r.Dst != nil {
			text = "table " + strconv.Itoa(r.Table) + " " + r.Dst.String()
		}
		if r.Gw != nil {
			text += " via " + r.Gw.String()
		}
		if l, err := k.nl.LinkByIndex(r.LinkIndex); err == nil {
			text += " dev " + l.Attrs().Name
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out, nil
}

func mounts() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) { // proc_pid_mountinfo(5): the fifth field, and the one after the hyphen
		fields := strings.Fields(line)
		hyphen := slices.Index(fields, "-")
		if hyphen < 6 || hyphen+1 >= len(fields) {
			return nil, fmt.Errorf("/proc/self/mountinfo: %q is not understood", line)
		}
		out = append(out, fields[4]+" "+fields[hyphen+1])
	}
	slices.Sort(out)
	return out, nil
}

// others are the other processes of the node.
func others() ([]string, error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 1 {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func processes() ([]string, error) {
	pids, err := others()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, pid := range pids {
		if text, alive := command(pid); alive {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out, nil
}

// command is a process's command line, or its name when it has none any more.
func command(pid string) (text string, alive bool) {
	data, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil {
		return "", false
	}
	if text := strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " ")); text != "" {
		return text, true
	}
	data, err = os.ReadFile("/proc/" + pid + "/comm")
	return "[" + strings.TrimSpace(string(data)) + "]", err == nil
}

func files(dirs ...string) ([]string, error) {
	var out []string
	for _, d := range dirs {
		err := filepath.WalkDir(d, func(p string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it went while we looked
			}
			if err == nil && p != d {
				out = append(out, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return out, nil
}

// namespaces are the pods', and those that only a process keeps alive, by being in it or by an open file.
func (h *helper) namespaces() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, _ := os.Readlink("/proc/thread-self/ns/net")
	known := map[string]bool{own: true}
	var out []string
	for _, p := range h.living() {
		known[fmt.Sprintf("net:[%d]", p.inode)] = true
		switch {
		case !p.mounted:
			out = append(out, p.name+" held, unmounted")
		case p.holds > 0:
			out = append(out, p.name+" held")
		default:
			out = append(out, p.name)
		}
	}
	pids, _ := others()
	for _, pid := range append(pids, "1") {
		for _, pattern := range []string{"/proc/" + pid + "/task/*/ns/net", "/proc/" + pid + "/fd/*"} {
			paths, _ := filepath.Glob(pattern) // the pattern is well-formed
			for _, p := range paths {
				target, err := os.Readlink(p)
				if err != nil || known[target] || !strings.HasPrefix(target, "net:[") {
					continue
				}
				known[target] = true
				text, _ := command(pid)
				out = append(out, "unmounted, kept by "+text)
			}
		}
	}
	slices.Sort(out)
	return out
}
