package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// containerFolder is where a container's root is put together. What is mounted there is seen by that container's thread
// alone.
const containerFolder = "/opt/enilab/container"

// shared are what every container has of its node, at the same paths.
var shared = []string{"/proc", "/sys", "/dev", "/run", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}

// enter makes the root of the calling thread, and with it that of all that it starts: the image's files below a layer
// that takes what is written, and the node's mounts in it. The thread cannot come back.
func (r *Root) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a container's mount namespace: %w", err)
	}
	clones, err := r.take()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(containerFolder, 0o755); err != nil {
		return err
	}
	if err := mount("enilab", containerFolder, "tmpfs", 0, "mode=755,"+rootSize); err != nil {
		return err
	}
	dir := func(name string) string { return path.Join(containerFolder, name) }
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(dir(name), 0o755); err != nil {
			return err
		}
	}
	layers := "lowerdir=" + r.Image + ",upperdir=" + dir("upper") + ",workdir=" + dir("work")
	if err := mount("enilab", dir("root"), "overlay", 0, layers); err != nil {
		return err
	}
	if err := os.Chdir(dir("root")); err != nil {
		return err
	}
	if err := leaveOldRoot(); err != nil { // first: from here on the image's links lead to the image's files
		return err
	}
	for _, c := range clones {
		if err := c.put(); err != nil {
			return err
		}
	}
	return errors.Join(varRun(), r.trust(), install(r.Files))
}

// take copies the node's mounts, while its paths are still to be seen.
func (r *Root) take() (clones []clone, err error) {
	mounts := append([]Mount(nil), r.Mounts...)
	for _, p := range shared {
		mounts = append(mounts, Mount{Container: p, Node: p})
	}
	for _, m := range mounts {
		if _, err := os.Stat(m.Node); errors.Is(err, fs.ErrNotExist) { // as a hostPath's DirectoryOrCreate
			if m.File {
				continue
			}
			err := os.MkdirAll(m.Node, 0o755)
			if errors.Is(err, unix.EROFS) { // below a folder of the computer, which it lacks, such as kernel modules
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		c, err := takeMount(path.Clean(m.Container), m.Node, true)
		if err != nil {
			return nil, err
		}
		clones = append(clones, c)
	}
	return clones, nil
}

// varRun makes /var/run what it is on the node, /run, also where the image has a folder of that name.
func varRun() error {
	if at, err := os.Stat("/var/run"); err == nil {
		if run, err := os.Stat("/run"); err == nil && os.SameFile(at, run) {
			return nil
		}
	}
	if err := os.MkdirAll("/var/run", 0o755); err != nil {
		return err
	}
	return mount("/run", "/var/run", "", unix.MS_BIND|unix.MS_REC, "")
}

// bundles are where Linux distributions have the certificates of the authorities that programs trust (crypto/x509,
// root_linux.go).
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// trust adds the run's authority to those that the image trusts. An image without authorities does not come to trust
// it.
func (r *Root) trust() error {
	if r.Trust == "" {
		return nil
	}
	var errs []error
	for _, name := range bundles {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("\n" + strings.TrimSpace(r.Trust) + "\n")
			err = errors.Join(err, f.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
