package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Cache is the folder of the user's kernels.
func Cache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/tmp"
	}
	return filepath.Join(dir, "enilab", "kernels")
}

// Find lists the kernels that this user can use, the preferred one first: what the environment names, the cache, then what is installed.
func Find() []Kernel {
	var out []Kernel
	if named := os.Getenv(KernelVariable); named != "" {
		if k, err := Describe(named); err == nil {
			out = append(out, *k)
		}
	}
	packages, _ := filepath.Glob(filepath.Join(Cache(), "linux-image-*.deb"))
	images, _ := filepath.Glob(filepath.Join(Cache(), "vmlinuz-*"))
	installed, _ := filepath.Glob("/boot/vmlinuz-*")
	for _, list := range [][]string{packages, images, installed} {
		slices.SortFunc(list, newest)
		for _, name := range list {
			if k, err := Describe(name); err == nil {
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

// Open makes a kernel ready: a package is unpacked into the cache, once.
func Open(name string) (*Kernel, error) {
	if name == "" {
		if named := os.Getenv(KernelVariable); named != "" {
			return Open(named)
		}
		list := Find()
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
	folder, err := unpacked(k.Package)
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
	if out.Arch == "" {
		out.Arch = k.Arch
	}
	return out, nil
}

// unpacked is the folder of a package's files: in the cache, under its name and size.
func unpacked(name string) (string, error) {
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
	if err := unpack(name, partial); err != nil {
		return "", err
	}
	if err := os.Rename(partial, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			return "", err
		} // else somebody else has unpacked it meanwhile
	}
	return folder, nil
}
