package vm

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// KernelVariable is the environment variable that names the kernel when the command line does not.
const KernelVariable = "ENILAB_KERNEL"

// Kernel is one that a machine can start.
type Kernel struct {
	Version string // such as 6.12.117+deb12-cloud-amd64
	Arch    string // as Go says it; empty: not known
	Image   string // vmlinuz; empty: it is in Package, which is unpacked when it is used
	Modules string // the folder modules/VERSION
	Package string // the Debian package that it is from
}

// String is where the kernel is.
func (k *Kernel) String() string {
	if k.Package != "" {
		return k.Package
	}
	return k.Image
}

// HowToGet says how somebody gets a kernel, without being root.
func HowToGet() string {
	return `on Debian: mkdir -p ` + Cache() + ` && cd ` + Cache() + ` && apt-get download linux-image-6.12.NNN+deb12-cloud-amd64
  (apt-cache search '^linux-image-.*cloud-amd64$' lists them; elsewhere: https://packages.debian.org/search?keywords=linux-image-cloud)
it is unpacked there, never installed, and needs no root; or name a vmlinuz that has lib/modules/VERSION beside it: --in vm=FILE`
}

// HowToGetFor is HowToGet for a machine of another architecture than this computer's: a kernel, and the programs that a node executes.
func HowToGetFor(arch string) string {
	return fmt.Sprintf(`on Debian, without installing anything:
  mkdir -p %[2]s/apt/lists/partial && cd %[2]s && touch apt/status
  apt="-o APT::Architecture=%[1]s -o APT::Architectures=%[1]s -o Dir::State=$PWD/apt -o Dir::State::status=$PWD/apt/status -o Dir::Cache=$PWD/apt"
  apt-get $apt update && apt-cache $apt search '^linux-image-.*cloud-%[1]s$'
  apt-get $apt download linux-image-6.12.NNN+deb12-cloud-%[1]s busybox-static
  (elsewhere: https://packages.debian.org has both packages for %[1]s)`, arch, filepath.Join(Cache(), arch))
}

// Cache is the folder of the user's kernels.
func Cache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/tmp"
	}
	return filepath.Join(dir, "enilab", "kernels")
}

// Find lists the kernels that this user can use, the preferred one first: what the environment names, the cache, what is installed, then those for
// other architectures.
func Find() []Kernel {
	var out []Kernel
	for _, arch := range slices.Concat([]string{runtime.GOARCH}, others()) {
		out = append(out, findFor(arch)...)
	}
	return out
}

// others are the architectures of machines that this computer's is not.
func others() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(emulators())), func(arch string) bool { return arch == runtime.GOARCH })
}

// findFor lists the kernels for an architecture. The one of the environment, and those that do not say theirs, are for this computer's.
func findFor(arch string) []Kernel {
	var out []Kernel
	own := arch == runtime.GOARCH
	if named := os.Getenv(KernelVariable); own && named != "" {
		if k, err := Describe(named); err == nil {
			out = append(out, *k)
		}
	}
	for _, pattern := range []string{filepath.Join(Cache(), "linux-image-*.deb"), filepath.Join(Cache(), arch, "linux-image-*.deb"), filepath.Join(Cache(), "vmlinuz-*"), "/boot/vmlinuz-*"} {
		list, _ := filepath.Glob(pattern)
		slices.SortFunc(list, newest)
		for _, name := range list {
			if k, err := Describe(name); err == nil && (k.Arch == arch || own && k.Arch == "") {
				out = append(out, *k)
			}
		}
	}
	return out
}

// newest orders by the numbers in the names, the highest first: 6.12 is newer than 6.1.
func newest(a, b string) int { return -compareVersions(filepath.Base(a), filepath.Base(b)) }

// compareVersions compares texts in which numbers count as numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x != "" && y != "" {
			x0, y0 := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x0) != len(y0) {
				return len(x0) - len(y0)
			}
			if c := strings.Compare(x0, y0); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

// Describe says what kernel a file is: a vmlinuz, or a Debian package. It unpacks nothing.
func Describe(name string) (*Kernel, error) {
	f, err := os.Open(name) // an installed kernel may be there and not readable
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("kernel %s: expected a vmlinuz or a Debian kernel package (.deb)", name)
	}
	if strings.HasSuffix(name, ".deb") {
		base, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), "linux-image-"), "_")
		return &Kernel{Version: base, Arch: archOf(name), Package: name}, nil
	}
	version, err := imageVersion(f)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	k := &Kernel{Version: version, Arch: archOf(version), Image: name}
	if abs, err := filepath.Abs(name); err == nil {
		k.Image = abs
	}
	for _, base := range []string{filepath.Dir(filepath.Dir(k.Image)), filepath.Dir(k.Image), "/"} { // beside boot/, beside the file, installed
		dir := filepath.Join(base, "lib", "modules", version)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			k.Modules = dir
			return k, nil
		}
	}
	return nil, fmt.Errorf("kernel %s: version %s has no modules: expected the folder lib/modules/%[2]s beside it, beside its folder, or in /", name, version)
}

func archOf(name string) string {
	for _, arch := range []string{"amd64", "arm64"} {
		if strings.Contains(name, arch) {
			return arch
		}
	}
	return ""
}

// imageVersion is the version that an image names (Documentation/arch/x86/boot.rst, kernel_version). Others are known by their names.
func imageVersion(f *os.File) (string, error) {
	head := make([]byte, 64<<10)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	if n < 0x210 {
		return "", errors.New("it is too short for a kernel: expected a vmlinuz or a Debian kernel package (.deb)")
	}
	if string(head[0x202:0x206]) == "HdrS" {
		at := 0x200 + int(head[0x20e]) + int(head[0x20f])<<8
		if at < n {
			text, _, _ := strings.Cut(string(head[at:]), "\x00")
			if version, _, ok := strings.Cut(text, " "); ok {
				return version, nil
			}
		}
	}
	if base, ok := strings.CutPrefix(filepath.Base(f.Name()), "vmlinuz-"); ok {
		return base, nil
	}
	return "", errors.New("it is no Linux kernel that says its version: expected a vmlinuz or a Debian kernel package (.deb)")
}

// Open makes a kernel ready: a package is unpacked into the cache, once. Without a name it is the preferred one for an architecture.
func Open(name, arch string) (*Kernel, error) {
	if name == "" {
		if named := os.Getenv(KernelVariable); named != "" && arch == runtime.GOARCH {
			return Open(named, arch)
		}
		list := findFor(arch)
		if len(list) == 0 && arch != runtime.GOARCH {
			return nil, &Lacking{"there is no kernel for a virtual machine of " + arch + " in " + filepath.Join(Cache(), arch) + "; " + HowToGetFor(arch)}
		}
		if len(list) == 0 {
			return nil, &Lacking{"there is no kernel for a virtual machine: none in " + Cache() + ", none readable in /boot, and " + KernelVariable + " names none; " + HowToGet()}
		}
		return list[0].ready()
	}
	k, err := Describe(name)
	if err != nil {
		return nil, err
	}
	return k.ready()
}

func (k *Kernel) ready() (*Kernel, error) {
	if k.Image != "" {
		return k, nil
	}
	folder, err := unpacked(k.Package, isKernel)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Package, err)
	}
	list, _ := filepath.Glob(filepath.Join(folder, "boot", "vmlinuz-*"))
	if len(list) != 1 {
		return nil, fmt.Errorf("kernel %s: expected one boot/vmlinuz-*, found %d: is this a linux-image package? (meta-packages have no kernel)", k.Package, len(list))
	}
	out, err := Describe(list[0])
	if err != nil {
		return nil, err
	}
	out.Package = k.Package
	out.Arch = cmp.Or(out.Arch, k.Arch)
	return out, nil
}

// Busybox is the program that is everything a node executes in a machine of another architecture than this computer's.
func Busybox(arch string) (string, error) {
	list, _ := filepath.Glob(filepath.Join(Cache(), arch, "busybox-static_*.deb"))
	if len(list) == 0 {
		return "", &Lacking{"a virtual machine of " + arch + " needs Debian's package busybox-static for it in " + filepath.Join(Cache(), arch) + "; " + HowToGetFor(arch)}
	}
	slices.SortFunc(list, newest)
	folder, err := unpacked(list[0], isBusybox)
	if err != nil {
		return "", fmt.Errorf("busybox %s: %w", list[0], err)
	}
	name := filepath.Join(folder, "bin", "busybox")
	if got, err := archOfProgram(name); err != nil || got != arch {
		return "", fmt.Errorf("busybox %s: expected a program for %s, found one for %s (%w)", list[0], arch, got, err)
	}
	return name, nil
}

// archOfProgram is the architecture of an ELF file, as Go says it.
func archOfProgram(name string) (string, error) {
	f, err := elf.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return f.Machine.String(), nil
}

// unpacked is the folder of a package's files: in the cache, under its name and size.
func unpacked(name string, wanted func(string) bool) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(Cache(), fmt.Sprintf("%s.%d", strings.TrimSuffix(filepath.Base(name), ".deb"), info.Size()))
	if _, err := os.Stat(folder); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(Cache(), 0o755); err != nil {
		return "", err
	}
	partial, err := os.MkdirTemp(Cache(), "unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", err
	}
	if err := unpack(name, partial, wanted); err != nil {
		return "", err
	}
	if err := os.Rename(partial, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			return "", err
		} // else somebody else has unpacked it meanwhile
	}
	return folder, nil
}

// applets are the tools of nodes and scripts that Debian's busybox-static is.
var applets = strings.Fields("awk basename cat chmod chown cp cut date dirname env find grep head install ip ln ls mkdir mv ping pkill ps rm sed sh sleep " +
	"sort sysctl tail tee test touch tr true uname wc xargs")

// isApplet says whether Busybox's program is also that tool.
func isApplet(tool string) bool { return slices.Contains(applets, tool) }
