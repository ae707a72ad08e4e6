package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/registry"
)

// label marks what a cluster has made beside kind's own containers.
const label = "enilab.cluster"

// folderLabel names the folder of a cluster's process, whose name begins with folderName.
const (
	folderLabel = "enilab.folder"
	folderName  = "enilab-kind-"
)

// routerOf is the name of the container whose network namespace is the VPC's router.
func routerOf(cluster string) string { return cluster + "-vpc" }

// usedPrefixes are those of Docker's networks, and of the machine's routes.
func usedPrefixes(ctx context.Context) ([]netip.Prefix, error) {
	out, err := routes()
	if err != nil {
		return nil, err
	}
	ids, err := docker(ctx, "network", "ls", "--quiet")
	if err != nil {
		return nil, err
	}
	for _, id := range strings.Fields(ids) {
		text, err := docker(ctx, "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}", id)
		if err != nil && !missing(err) { // else somebody has just removed it
			return nil, err
		}
		for _, f := range strings.Fields(text) {
			if p, err := netip.ParsePrefix(f); err == nil {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// createNetwork makes the network that is the nodes' subnets. It knows the cluster's folder, for who removes them when this process is gone.
func createNetwork(ctx context.Context, c *Config, l *layout, folder string) error {
	self, err := registry.Self()
	if err != nil {
		return err
	}
	err = dockerMakes(ctx, "network", "create", "--driver", "bridge", "--subnet", l.wire.String(), "--ip-range", l.homes[0].machines.String(),
		"--gateway", l.host.String(), "--opt", fmt.Sprintf("com.docker.network.driver.mtu=%d", machine.JumboMTU), "--label", label+"="+c.Name,
		"--label", ownerLabel+"="+ownerText(self), "--label", folderLabel+"="+folder, c.Name)
	if err != nil {
		return fmt.Errorf("make the Docker network %s with %v: %w", c.Name, l.wire, err)
	}
	return nil
}

// makeRouter makes the container that holds the router's namespace.
func makeRouter(ctx context.Context, c *Config, l *layout) error {
	err := dockerMakes(ctx, "run", "--detach", "--name", routerOf(c.Name), "--hostname", routerOf(c.Name), "--label", label+"="+c.Name,
		"--network", c.Name, "--ip", l.homes[0].router.String(), "--entrypoint", "sleep", c.NodeImage, "infinity")
	if err != nil {
		return fmt.Errorf("make the router's container %s: %w", routerOf(c.Name), err)
	}
	return nil
}

// existing says what of a cluster's is there already; "" is nothing.
func existing(ctx context.Context, name string) (string, error) {
	for _, what := range [][]string{
		{"container", "ps", "--all", "--quiet", "--filter", "label=" + kindLabel + "=" + name},
		{"container", "ps", "--all", "--quiet", "--filter", "name=^/?" + routerOf(name) + "$"},
		{"network", "ls", "--quiet", "--filter", "name=^" + name + "$"},
	} {
		out, err := docker(ctx, what...)
		if err != nil {
			return "", err
		}
		if out != "" {
			return what[0], nil
		}
	}
	return "", nil
}

// kindLabel is kind's own, on every node's container.
const kindLabel = "io.x-k8s.kind.cluster"

// remove removes everything of a cluster, whoever made it; what is not there is fine.
func remove(ctx context.Context, name string) error {
	var ids []string
	for _, filter := range []string{"label=" + kindLabel + "=" + name, "label=" + label + "=" + name} {
		out, err := docker(ctx, "container", "ps", "--all", "--quiet", "--filter", filter)
		if err != nil {
			return err
		}
		ids = append(ids, strings.Fields(out)...)
	}
	if len(ids) > 0 {
		rm := append([]string{"container", "rm", "--force", "--volumes"}, ids...)
		if _, err := docker(ctx, rm...); err != nil {
			for _, id := range ids {
				thaw(id)
			}
			if _, err := docker(ctx, rm...); err != nil {
				return err
			}
		}
	}
	out, err := docker(ctx, "network", "ls", "--filter", "label="+label+"="+name, "--format", fmt.Sprintf("{{.ID}} {{.Label %q}}", folderLabel))
	if err != nil || out == "" {
		return err
	}
	for line := range strings.Lines(out) {
		id, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := docker(ctx, "network", "rm", id); err != nil && !missing(err) {
			return err
		}
		if strings.HasPrefix(filepath.Base(folder), folderName) {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownerLabel names the process that is a cluster's cloud. A cluster without its cloud is of no use to anybody.
const ownerLabel = "enilab.owner"

func ownerText(p registry.Process) string { return fmt.Sprintf("%d/%d", p.PID, p.Begun) }

func parseOwner(s string) (p registry.Process, ok bool) {
	n, err := fmt.Sscanf(s, "%d/%d", &p.PID, &p.Begun)
	return p, n == 2 && err == nil
}

// removeOrphans removes the clusters whose process was killed. Docker starts their nodes again whenever it starts itself, and they wear out
// the machine: Linux gives a user 128 inotify instances by default, of which a node takes about twenty.
func removeOrphans(ctx context.Context, log func(string)) error {
	out, err := docker(ctx, "network", "ls", "--filter", "label="+ownerLabel, "--format", fmt.Sprintf("{{.Label %q}} {{.Label %q}}", label, ownerLabel))
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		owner, ok := parseOwner(text)
		if !ok || name == "" || owner.Alive() {
			continue
		}
		log("removing the cluster " + name + ", whose process " + text + " is gone")
		if err := remove(ctx, name); err != nil {
			log(fmt.Sprintf("the cluster %s stays: %v", name, err)) // it is not in the way of another one
		}
	}
	return nil
}

// thaw thaws what is frozen inside a container. runc freezes a pod's cgroup for as long as it kills it; when runc itself is killed then, with
// the node, the pod stays frozen for ever, and under cgroup v1 Docker cannot remove the node ("tried to kill container, but did not receive an
// exit event"). Version 2 has no such tree and needs none: there what is frozen dies of SIGKILL.
func thaw(container string) {
	const freezer = "/sys/fs/cgroup/freezer"
	for _, pattern := range []string{"/docker/" + container + "*", "/system.slice/docker-" + container + "*"} { // by Docker's cgroup driver
		trees, _ := filepath.Glob(freezer + pattern)
		for _, tree := range trees {
			_ = filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == "freezer.state" {
					if state, _ := os.ReadFile(p); strings.TrimSpace(string(state)) != "THAWED" {
						_ = os.WriteFile(p, []byte("THAWED"), 0) // Docker says what still does not go
					}
				}
				return nil
			})
		}
	}
}
