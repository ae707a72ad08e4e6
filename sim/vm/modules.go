package vm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"
)

// Modules are what a laboratory needs of a kernel, as modules or built in. Whoever needs another one has no modprobe inside: it has to be here.
var Modules = []string{"veth", "nf_tables", "nf_conntrack", "nf_nat", "nft_ct", "nft_nat", "nft_masq", "nft_chain_nat"}

// moreModules are used by some daemons and by scenarios that disturb them; a kernel may lack them.
var moreModules = []string{"bridge", "dummy", "8021q", "ifb", "nf_conntrack_netlink", "nfnetlink_log", "nf_log_syslog",
	"nft_compat", "nft_fib", "nft_fib_ipv4", "nft_fib_inet", "nft_log", "nft_limit", "nft_reject", "nft_reject_ipv4", "nft_reject_inet", "nft_redir", "nft_numgen", "nft_hash",
	"x_tables", "ip_tables", "iptable_filter", "iptable_nat", "iptable_mangle", "ipt_REJECT",
	"xt_comment", "xt_mark", "xt_connmark", "xt_conntrack", "xt_addrtype", "xt_nat", "xt_MASQUERADE", "xt_multiport", "xt_set", "xt_statistic", "xt_tcpudp", "ip_set",
	"sch_tbf", "sch_htb", "sch_ingress", "sch_netem", "sch_fq_codel", "cls_u32", "act_mirred"}

// moduleTree is a kernel's /lib/modules/VERSION.
type moduleTree struct {
	folder  string
	files   map[string]string // path of each module's file, by name
	builtin map[string]bool
}

// moduleName is a module's name as the kernel says it: hyphens and underscores are one.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func openModules(folder string) (*moduleTree, error) {
	t := &moduleTree{folder: folder, files: map[string]string{}, builtin: map[string]bool{}}
	list, err := os.ReadFile(filepath.Join(folder, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("the kernel's modules: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		t.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), ".ko") && !d.IsDir() {
			t.files[moduleName(name)] = name
		}
		return err
	})
	return t, err
}

// Has says of modules whether the kernel has them, as modules or built in.
func (k *Kernel) Has() (func(module string) bool, error) {
	t, err := openModules(k.Modules)
	if err != nil {
		return nil, err
	}
	return t.has, nil
}

func (t *moduleTree) has(name string) bool {
	name = moduleName(name)
	return t.files[name] != "" || t.builtin[name]
}

// module is one that is to be loaded.
type module struct {
	name string
	data []byte
}

// order gives the modules, and what they depend on before them. What is built in is left out. Required ones have to be there.
func (t *moduleTree) order(required, wished []string) ([]module, error) {
	var out []module
	var missing []string
	var errs []error
	state := map[string]bool{} // true: loaded; false: under way
	var load func(name string) error
	load = func(name string) error {
		name = moduleName(name)
		if _, seen := state[name]; seen || t.builtin[name] {
			return nil
		}
		file, ok := t.files[name]
		if !ok {
			return fs.ErrNotExist
		}
		state[name] = false
		data, err := readModule(file)
		if err != nil {
			return err
		}
		depends, err := dependsOn(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, d := range depends {
			if err := load(d); err != nil {
				return fmt.Errorf("module %s needs %s: %w", name, d, err)
			}
		}
		out, state[name] = append(out, module{name, unsigned(data)}), true
		return nil
	}
	for i, name := range slices.Concat(required, wished) {
		err := load(name)
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		case i < len(required) && err != fs.ErrNotExist: // what it depends on is missing
			errs = append(errs, err)
		case i < len(required):
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("the kernel has no %s, neither built in nor below %s: use another one (enilab vm kernels)", strings.Join(missing, ", "), t.folder))
	}
	return out, errors.Join(errs...)
}

// unsigned is a module without the signature behind it (the kernel's scripts/sign-file.c): its bytes are the user's own, and a machine would take
// five seconds to check fifty of them.
func unsigned(data []byte) []byte {
	const mark = "~Module signature appended~\n"
	const tail = 12 // struct module_signature: its last four bytes are the length of what is before it
	body, ok := bytes.CutSuffix(data, []byte(mark))
	if !ok || len(body) < tail {
		return data
	}
	n := uint64(binary.BigEndian.Uint32(body[len(body)-4:])) + tail
	if n > uint64(len(body)) {
		return data
	}
	return body[:uint64(len(body))-n]
}

// maxModule bounds a decompressed module: the largest of a distribution have 10 MB.
const maxModule = 64 << 20

// readModule reads a module's file, decompressed.
func readModule(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	switch ext := filepath.Ext(name); ext {
	case ".ko":
		return data, nil
	case ".xz":
		r, err := xz.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(r, maxModule))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return data, nil
	default:
		return nil, fmt.Errorf("%s: modules compressed as %s are not read: decompress them, or use a Debian kernel package", name, ext)
	}
}

// dependsOn are the modules that one names in its .modinfo.
func dependsOn(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no .modinfo: this is no kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range bytes.Split(info, []byte{0}) {
		if list, ok := bytes.CutPrefix(field, []byte("depends=")); ok && len(list) > 0 {
			return strings.Split(string(list), ","), nil
		}
	}
	return nil, nil
}
