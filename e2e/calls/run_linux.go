package calls

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// nsfs is the file system of namespaces (linux/magic.h), on which a mounted one is found.
const nsfs = 0x6e736673

// netnsAt is the inode of a mounted namespace; 0 when nothing is at that path, or something else, such as the empty file
// that is left when the namespace was unmounted.
func netnsAt(path string) uint64 {
	var fs syscall.Statfs_t
	var st syscall.Stat_t
	if path == "" || syscall.Statfs(path, &fs) != nil || fs.Type != nsfs || syscall.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}
