package vm

import (
	"os"
	"path/filepath"
	"strings"
)

// Running is the kernel of this computer, with the folder of its modules, which need not be there. No machine is started with it.
func Running() *Kernel {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return &Kernel{} // another system's
	}
	version := strings.TrimSpace(string(data))
	return &Kernel{Version: version, Modules: filepath.Join("/lib/modules", version)}
}

// Loaded says whether the kernel of this computer has loaded a module.
func Loaded(module string) bool {
	_, err := os.Stat(filepath.Join("/sys/module", moduleName(module)))
	return err == nil
}
