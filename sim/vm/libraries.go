package vm

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// libraries are the loader of a program and all libraries that it and they need, as host paths; none of a static one.
func libraries(program string) ([]string, error) {
	var out []string
	var errs []error
	for todo := []string{program}; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		needed, loader, err := needs(name)
		if err != nil {
			if name == program {
				return nil, nil // a script, or no ELF file at all: its own business
			}
			errs = append(errs, err)
			continue
		}
		if loader != "" && !slices.Contains(out, loader) {
			out = append(out, loader)
		}
		for _, lib := range needed {
			found := findLibrary(lib, name, loader)
			if found == "" {
				errs = append(errs, fmt.Errorf("%s needs %s, which is in none of the usual folders", name, lib))
				continue
			}
			if !slices.Contains(out, found) {
				out = append(out, found)
				todo = append(todo, found)
			}
		}
	}
	return out, errors.Join(errs...)
}

// needs are the sonames that an ELF file needs, and its loader.
func needs(name string) (needed []string, loader string, err error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return nil, "", fmt.Errorf("%s: its loader: %w", name, err)
		}
		loader = strings.TrimRight(string(b), "\x00")
	}
	needed, err = f.ImportedLibraries()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return needed, loader, nil
}

// findLibrary is where the loader finds a library without its cache: beside the file, beside the loader, in the usual folders.
func findLibrary(lib, by, loader string) string {
	folders := []string{filepath.Dir(by)}
	if loader != "" {
		if real, err := filepath.EvalSymlinks(loader); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	for _, triple := range []string{"x86_64-linux-gnu", "aarch64-linux-gnu"} {
		folders = append(folders, "/lib/"+triple, "/usr/lib/"+triple)
	}
	folders = append(folders, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	for _, dir := range folders {
		name := filepath.Join(dir, lib)
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}
