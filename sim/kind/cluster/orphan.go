package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/enilab/enilab/sim/registry"
)

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
