package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What a node has of the host, read-only. Links among them are made again, as they are relative on every distribution that has them.
var hostFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"}

// Without these some of the host's programs do not find their parts.
var hostFiles = []string{"/etc/alternatives", "/etc/iproute2", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/protocols",
	"/etc/services", "/etc/ssl"}

var devices = []string{"full", "null", "random", "tty", "urandom", "zero"}

// ownFolders are what a node has of its own, after the tmpfs below them are mounted.
var ownFolders = []string{"etc/cni/net.d", "opt/cni/bin", "app", "root", "tmp", "run/netns", "run/containerd", "run/lock", "run/enilab",
	"var/lib/aws-node", "var/lib/cni", "var/log/aws-routed-eni", "var/tmp"}

// clone is a detached copy of a mount, or part of one: the host's, while its paths are still to be seen.
type clone struct {
	inside   string // relative to the new root
	fd       int
	folder   bool
	writable bool
}

// makeRoot replaces the process's root, and with it that of all its children: everything in it is the node's, and nothing of it is seen
// outside of the mount namespace.
func makeRoot(s *Spec) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil { // first: nothing below may reach the host
		return err
	}
	clones, links, err := takeHost(s)
	if err != nil {
		return err
	}
	if err := enterNewRoot(); err != nil {
		return err
	}
	if err := mountOwn(); err != nil {
		return err
	}
	for _, l := range links {
		if err := os.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	for _, c := range clones {
		if err := c.put(); err != nil {
			return err
		}
	}
	if err := writeOwn(s); err != nil {
		return err
	}
	return leaveOldRoot()
}

// takeHost copies the mounts of what the node has of the host. Links are pairs of path and target.
func takeHost(s *Spec) (clones []clone, links [][2]string, err error) {
	take := func(inside, host string, writable bool) error {
		c, err := takeMount(inside, host, writable)
		if err == nil {
			clones = append(clones, c)
		}
		return err
	}
	for _, p := range slices.Concat(hostFolders, hostFiles) {
		info, err := os.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return nil, nil, err
			}
			links = append(links, [2]string{p[1:], target})
		default:
			if err := take(p, p, false); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, d := range devices {
		if err := take("/dev/"+d, "/dev/"+d, true); err != nil {
			return nil, nil, err
		}
	}
	if s.Plugin != "" {
		if err := take("/opt/cni/bin/"+pluginName, s.Plugin, false); err != nil {
			return nil, nil, err
		}
	}
	if len(s.Daemon) > 0 {
		if err := take(s.process().Argv[0], s.Daemon[0], false); err != nil {
			return nil, nil, err
		}
	}
	for inside, host := range s.Files { // their order shows nowhere: no path is below another
		if err := take(path.Clean("/"+inside), host, false); err != nil {
			return nil, nil, err
		}
	}
	return clones, links, nil
}

func takeMount(inside, host string, writable bool) (clone, error) {
	info, err := os.Stat(host)
	if err != nil {
		return clone{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, host, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return clone{}, fmt.Errorf("copy the mount of %s: %w", host, err)
	}
	if !writable {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil && !errors.Is(err, unix.ENOSYS) { // before Linux 5.12 see put
			return clone{}, fmt.Errorf("make %s read-only: %w", host, err)
		}
	}
	return clone{strings.TrimPrefix(inside, "/"), fd, info.IsDir(), writable}, nil
}

// put mounts the copy in the new root, which is the current folder.
func (c *clone) put() error {
	defer unix.Close(c.fd)
	if c.folder {
		if err := os.MkdirAll(c.inside, 0o755); err != nil {
			return err
		}
	} else {
		if err := os.MkdirAll(path.Dir(c.inside), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(c.inside, os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_ = f.Close()
	}
	if err := unix.MoveMount(c.fd, "", unix.AT_FDCWD, c.inside, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount /%s: %w", c.inside, err)
	}
	if c.writable {
		return nil
	}
	return mount("", c.inside, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

// What a node's files may take of the machine's memory, together.
const (
	rootSize = "size=2g"
	logSize  = "size=64m"
)

// enterNewRoot mounts a tmpfs over a folder that every host has, which is seen in this mount namespace alone, and goes there.
func enterNewRoot() error {
	const base = "/usr"
	if err := mount("enilab", base, "tmpfs", unix.MS_NOSUID, "mode=755,"+rootSize); err != nil {
		return err
	}
	return os.Chdir(base)
}

func mountOwn() error {
	for _, m := range []struct {
		at, kind, options string
		flags             uintptr
	}{
		{"proc", "proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sys", "sysfs", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY}, // most of it is the host's
		{"dev", "tmpfs", "mode=755", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"dev/shm", "tmpfs", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"dev/mqueue", "mqueue", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"run", "tmpfs", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"run/aws-node", "tmpfs", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"var/log", "tmpfs", "mode=755," + logSize, unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		err := mount(m.kind, m.at, m.kind, m.flags, m.options)
		if err != nil && m.kind == "mqueue" && errors.Is(err, unix.ENODEV) {
			continue // a kernel without POSIX message queues
		}
		if err != nil {
			return err
		}
	}
	for _, f := range ownFolders {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod("tmp", 0o1777), os.Chmod("var/tmp", 0o1777),
		os.Symlink("../run", "var/run"), // relative: see the package's documentation
		os.Symlink("../run/lock", "var/lock"),
		os.Symlink("/proc/self/fd", "dev/fd"), os.Symlink("/proc/self/fd/0", "dev/stdin"),
		os.Symlink("/proc/self/fd/1", "dev/stdout"), os.Symlink("/proc/self/fd/2", "dev/stderr"))
}

func writeOwn(s *Spec) error {
	files := map[string]string{
		"etc/hostname":      s.Name + "\n",
		"etc/hosts":         "127.0.0.1 localhost\n127.0.1.1 " + s.Name + "\n",
		"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
		"etc/resolv.conf":   "",
	}
	if len(s.Conflist) > 0 {
		files["etc/cni/net.d/"+conflistName] = string(s.Conflist)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// leaveOldRoot makes the current folder the root and lets go of everything else.
func leaveOldRoot() error {
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root (on an initramfs the kernel cannot): %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old root lies over the new one
		return fmt.Errorf("let go of the host's file systems: %w", err)
	}
	return os.Chdir("/")
}

// mount is mount(2) with an error that says what was to be mounted.
func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s (%s, flags %#x): %w", target, kind, flags, err)
	}
	return nil
}
