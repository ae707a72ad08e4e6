package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/fakes/ec2"
)

// Bounds of what is kept: when everything fails, the first failures are what matters.
const (
	mostEvidence = 10       // specs per cluster
	mostFile     = 16 << 20 // bytes
)

// keepEvidence writes what there is to know about a spec that has failed, before anything is cleaned up.
func (b *bed) keepEvidence(ctx SpecContext) {
	r := CurrentSpecReport()
	if !r.Failed() || b.Cluster == nil {
		return
	}
	b.evidence++
	if b.evidence > mostEvidence {
		say(fmt.Sprintf("no evidence is kept: %d specs have failed before", mostEvidence))
		return
	}
	dir := filepath.Join(b.artifacts, fileName(strings.Join(append(r.ContainerHierarchyTexts[1:], r.LeafNodeText), " ")))
	if err := b.collect(ctx, dir, r.StartTime); err != nil {
		say("of the evidence there lacks: " + err.Error())
	}
	say("evidence is in " + dir)
	AddReportEntry("evidence", dir)
}

var noName = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func fileName(s string) string {
	s = strings.Trim(noName.ReplaceAllString(s, "-"), "-")
	return s[:min(len(s), 150)]
}

// clusterCommands run on the control plane, nodeCommands on every node, routerCommands in the VPC's router. A node's image has them.
var (
	clusterCommands = map[string]string{
		"pods.txt":       "kubectl get pods -A -o wide",
		"pods.yaml":      "kubectl get pods -A -o yaml",
		"events.txt":     "kubectl get events -A --sort-by=.metadata.creationTimestamp",
		"nodes.txt":      "kubectl describe nodes",
		"services.txt":   "kubectl get services,endpointslices -A -o wide",
		"daemonset.yaml": "kubectl get daemonset -n kube-system aws-node -o yaml",
	}
	nodeCommands = map[string]string{
		"rules.txt":      "ip rule",
		"routes.txt":     "ip route show table all",
		"links.txt":      "ip -d -s link",
		"addresses.txt":  "ip addr",
		"neighbours.txt": "ip neigh; ip neigh show proxy",
		"nft.txt":        "nft list ruleset",
		"iptables.txt":   "iptables-save",
		"conntrack.txt":  "cat /proc/net/nf_conntrack",
		"sandboxes.txt":  "crictl pods -v; crictl ps -a",
		"processes.txt":  "ps -ef",
	}
	routerCommands = map[string]string{
		"rules.txt":      "ip rule",
		"routes.txt":     "ip route show table all",
		"links.txt":      "ip -d -s link",
		"neighbours.txt": "ip neigh",
		"nft.txt":        "nft list ruleset",
	}
)

// nodeFolders are copied: the daemon's records and logs, and the logs of its containers, current and previous ones. None of
// them is behind a symbolic link, which would lead into the host's own folders.
var nodeFolders = []string{"run/aws-node", "var/lib/aws-node", "var/log/aws-routed-eni", "var/log/pods/kube-system_aws-node-*", "etc/cni/net.d"}

// collect writes what there is to know about the cluster into a folder.
func (b *bed) collect(ctx context.Context, dir string, since time.Time) error {
	var mu sync.Mutex
	var errs []error
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	run := func(container, dir string, commands map[string]string) {
		for name, command := range commands {
			note(dump(ctx, container, command, filepath.Join(dir, name)))
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		cluster := map[string]string{}
		for name, command := range clusterCommands {
			cluster[name] = "KUBECONFIG=/etc/kubernetes/admin.conf " + command
		}
		run(b.Nodes()[0].Name, dir, cluster)
		run(b.Name()+"-vpc", filepath.Join(dir, "router"), routerCommands)
		note(b.dumpCloud(filepath.Join(dir, "ec2.json")))
	})
	for _, n := range b.Nodes() {
		all.Go(func() {
			to := filepath.Join(dir, n.Name)
			run(n.Name, to, nodeCommands)
			run(n.Name, to, map[string]string{"journal.txt": fmt.Sprintf("journalctl --no-pager -u kubelet -u containerd --since @%d", since.Unix())})
			for _, f := range nodeFolders {
				note(copyFolders(n.Root(), f, to))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// dump writes what a command prints in a container.
func dump(ctx context.Context, container, command, to string) error {
	out, err := exec.CommandContext(ctx, "docker", "exec", container, "sh", "-c", command).CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%s: %v\n", command, err)
	}
	return write(to, out)
}

func write(to string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// dumpCloud writes EC2's truth.
func (b *bed) dumpCloud(to string) error {
	var enis []ec2.ENI
	links := map[string][]ec2.Link{}
	b.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		enis = m.AllENIs()
		for _, n := range b.Nodes() {
			links[n.Name] = m.Links(n.Instance)
		}
	})
	data, err := json.MarshalIndent(map[string]any{"ENIs": enis, "links": links}, "", "\t")
	if err != nil {
		return err
	}
	return write(to, data)
}

// copyFolders copies the regular files of folders below a root. What vanishes meanwhile is not there.
func copyFolders(root, pattern, to string) error {
	folders, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return err
	}
	var errs []error
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return nil
			}
			defer f.Close()
			data, err := io.ReadAll(io.LimitReader(f, mostFile))
			if err != nil {
				return err
			}
			return write(filepath.Join(to, name), data)
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
