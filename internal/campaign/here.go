package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Folder is where released versions of systems are: what ENILAB_SYSTEMS says.
func Folder() string { return os.Getenv("ENILAB_SYSTEMS") }

// Lacking is why nothing can be played here; empty: something can.
func Lacking() string {
	if Folder() == "" {
		return "ENILAB_SYSTEMS names no folder with binaries of released versions (docs/systems.md says what is in one)"
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		return "there is no qemu-system-x86_64 (Debian: apt-get install --no-install-recommends qemu-system-x86)"
	}
	return ""
}

// AtHand are the versions of a system that are in Folder, the oldest one first. A folder whose name is no version is not one.
func AtHand(system string) ([]string, error) {
	dir := filepath.Join(Folder(), system)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("versions of %s in ENILAB_SYSTEMS: %w", system, err)
	}
	var out []string
	for _, e := range entries {
		if _, ok := numbers(e.Name()); ok && e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, Compare)
	return out, nil
}

// Compare orders versions such as 1.9.3 and 1.22.0 by their numbers.
func Compare(a, b string) int {
	x, _ := numbers(a)
	y, _ := numbers(b)
	return cmp.Or(slices.Compare(x, y), strings.Compare(a, b))
}

// Minor is the 1.22 of 1.22.4.
func Minor(version string) string {
	if n, ok := numbers(version); ok {
		return fmt.Sprintf("%d.%d", n[0], n[1])
	}
	return version
}

func numbers(version string) (out []int, ok bool) {
	for _, s := range strings.Split(version, ".") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, len(out) == 3
}

// QEMU is the emulator's version.
func QEMU() (string, error) {
	out, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("which QEMU is it: %w", err)
	}
	f := strings.Fields(string(out))
	if len(f) < 4 {
		return "", fmt.Errorf("which QEMU is it: expected \"QEMU emulator version N\", found %q", out)
	}
	return f[3], nil
}

// Words takes a list apart that has spaces or commas between its words.
func Words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
}

// Replace writes a file in one step.
func Replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return nil
}
