package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// sysctl is one setting of the router's namespace. /proc/sys/net shows the namespace of the thread.
type sysctl struct {
	path, value string
	optional    bool // the kernel may have been built without it
	own         bool // only where no other program has links
}

// settings of the router. A new namespace inherits the host's, so nothing is left to chance.
var settings = []sysctl{
	{path: "ipv4/ip_forward", value: "1"},
	{path: "ipv4/conf/all/rp_filter", value: "1"},     // strict: the source check
	{path: "ipv4/conf/default/rp_filter", value: "1"}, // the greater of all and the link's counts, and 2 would be loose
	{path: "ipv4/conf/all/accept_local", value: "0"},
	{path: "ipv4/conf/default/accept_local", value: "0"},
	{path: "ipv4/conf/all/arp_ignore", value: "8"}, // the responder answers, the kernel does not
	{path: "ipv4/conf/all/proxy_arp", value: "0"},
	{path: "ipv4/conf/default/proxy_arp", value: "0"},
	{path: "ipv4/conf/all/accept_redirects", value: "0"},
	{path: "ipv4/conf/all/send_redirects", value: "0"}, // a VPC sends none
	{path: "ipv4/conf/default/send_redirects", value: "0"},
	{path: "ipv4/conf/all/log_martians", value: "0"},
	{path: "ipv4/conf/default/log_martians", value: "0"},
	{path: "ipv4/conf/default/ignore_routes_with_linkdown", value: "0"},
	{path: "ipv4/tcp_orphan_retries", value: "1"}, // a closed socket whose peer is gone would keep the namespace alive
	{path: "ipv4/tcp_fin_timeout", value: "1"},
	{path: "ipv6/conf/all/disable_ipv6", value: "1", optional: true, own: true}, // takes static addresses from links, for good
	{path: "ipv6/conf/default/disable_ipv6", value: "1", optional: true},
}

// linkSettings are those of a link that a borrowed namespace has: for most, the kernel takes the greater of all's and the link's.
var linkSettings = []sysctl{
	{path: "forwarding", value: "1"},
	{path: "rp_filter", value: "1"},
	{path: "accept_local", value: "0"},
	{path: "proxy_arp", value: "0"},
	{path: "proxy_arp_pvlan", value: "0"},
	{path: "send_redirects", value: "0"}, // on the segment, packets leave by the link that they came by
	{path: "log_martians", value: "0"},
	{path: "ignore_routes_with_linkdown", value: "0"},
	{path: "arp_announce", value: "2"}, // asks strangers with the link's address: they may have no route to the witness, and be silent then
}

const sysctls = "/proc/sys/net/"

// configure writes the settings of the calling thread's network namespace, and of these links.
func configure(borrowed bool, links []string) error {
	for _, s := range settings {
		if s.own && borrowed {
			continue
		}
		if err := s.set(); err != nil {
			return err
		}
	}
	for _, link := range links {
		for _, s := range linkSettings {
			s.path = "ipv4/conf/" + link + "/" + s.path
			if err := s.set(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s sysctl) set() error {
	err := write(sysctls+s.path, s.value)
	if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("setting %s=%s of the router's namespace (/proc/sys must be writable): %w", s.path, s.value, err)
	}
	return nil
}

// remember reads all that configure changes in the calling thread's network namespace. ip_forward changes settings of every link, and so
// do the defaults: all of them are read.
func remember() ([]sysctl, error) {
	var paths []string
	for _, s := range settings {
		if !s.own {
			paths = append(paths, s.path)
		}
	}
	links, err := os.ReadDir(sysctls + "ipv4/conf")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(links, func(a, b os.DirEntry) int { return order(a.Name()) - order(b.Name()) })
	for _, link := range links {
		files, err := os.ReadDir(sysctls + "ipv4/conf/" + link.Name())
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			paths = append(paths, path.Join("ipv4/conf", link.Name(), file.Name()))
		}
	}
	var out []sysctl
	for _, p := range paths {
		value, err := os.ReadFile(sysctls + p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			out = append(out, sysctl{path: p, value: strings.TrimSpace(string(value))})
		}
	}
	return out, nil
}

// order is the one in which settings must be written: what changes others first.
func order(link string) int {
	switch link {
	case "all":
		return 0
	case "default":
		return 1
	}
	return 2
}

// restore writes back what is different in the calling thread's network namespace. Settings of links that are gone are fine.
func restore(settings []sysctl) error {
	var errs []error
	for _, s := range settings {
		now, err := os.ReadFile(sysctls + s.path)
		if err == nil && strings.TrimSpace(string(now)) != s.value {
			err = write(sysctls+s.path, s.value)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("setting %s=%s, as it was: %w", s.path, s.value, err))
		}
	}
	return errors.Join(errs...)
}

func write(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
