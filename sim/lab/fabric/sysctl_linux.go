package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// sysctl is one setting of the router's namespace. /proc/sys/net shows the namespace of the thread.
type sysctl struct {
	path, value string
	optional    bool // the kernel may have been built without it
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
	{path: "ipv4/conf/all/send_redirects", value: "0"}, // a VPC sends none
	{path: "ipv4/conf/default/send_redirects", value: "0"},
	{path: "ipv4/conf/all/log_martians", value: "0"},
	{path: "ipv4/conf/default/log_martians", value: "0"},
	{path: "ipv4/conf/default/ignore_routes_with_linkdown", value: "0"},
	{path: "ipv4/tcp_orphan_retries", value: "1"}, // a closed socket whose peer is gone would keep the namespace alive
	{path: "ipv4/tcp_fin_timeout", value: "1"},
	{path: "ipv6/conf/all/disable_ipv6", value: "1", optional: true},
	{path: "ipv6/conf/default/disable_ipv6", value: "1", optional: true},
}

// configure writes the settings of the calling thread's network namespace.
func configure() error {
	for _, s := range settings {
		err := write("/proc/sys/net/"+s.path, s.value)
		if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("setting %s=%s of the router's namespace (/proc/sys must be writable): %w", s.path, s.value, err)
		}
	}
	return nil
}

func write(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
