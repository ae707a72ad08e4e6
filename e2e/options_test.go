package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// options are what the environment asks for.
type options struct {
	proxies   []string // modes of kube-proxy, a cluster each
	artifacts string   // folder
	junit     string   // file
	ends      string   // folder, in which each process of a run says what its clusters had
	keep      bool
	fresh     bool
	broken    string // how the daemon is, see e2e/broken; empty: it is ours
}

// brokenDaemons are the faults of e2e/broken.
var brokenDaemons = []string{"same-address", "no-del", "down"}

// proxyModes are kube-proxy's; all specs run on a cluster of the first.
var proxyModes = []string{"iptables", "nftables"}

func readOptions() (options, error) {
	root, err := moduleRoot()
	if err != nil {
		return options{}, err
	}
	o := options{
		proxies:   proxyModes,
		artifacts: os.Getenv("ENILAB_E2E_ARTIFACTS"),
		junit:     filepath.Join(root, "bin/e2e/junit.xml"),
		ends:      filepath.Join(root, "bin/e2e/traces"),
		keep:      os.Getenv("ENILAB_E2E_KEEP") != "",
		fresh:     os.Getenv("ENILAB_E2E_FRESH") != "",
		broken:    os.Getenv("ENILAB_E2E_BROKEN"),
	}
	o.artifacts = cmp.Or(o.artifacts, filepath.Join(root, "bin/e2e/artifacts"))
	if o.broken != "" && !slices.Contains(brokenDaemons, o.broken) {
		return o, fmt.Errorf("ENILAB_E2E_BROKEN is %q: expected one of %s", o.broken, strings.Join(brokenDaemons, ", "))
	}
	switch p := os.Getenv("ENILAB_E2E_PROXY"); p {
	case "":
	case "iptables", "nftables":
		o.proxies = []string{p}
	default:
		return o, fmt.Errorf("ENILAB_E2E_PROXY is %q: iptables and nftables are possible", p)
	}
	return o, nil
}

// moduleRoot is the folder of go.mod: the suite runs there by make, and in its own folder by go test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("there is no go.mod above the working directory: the suite builds the image from this module's sources")
		}
		dir = up
	}
}
