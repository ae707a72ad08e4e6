package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/e2e/calls"
)

// livesAt are the lives that are lived again on a node of every run, by the node's place in Nodes: each takes a minute, for that is how
// often kubelet forgets what is dead, so nodes live theirs at the same time. ENILAB_E2E_CALLS=all lives all of them.
var livesAt = [][]string{{"statefulset-roll"}, {"force-delete"}, {"runtime-restart-in-del"}}

var allLivesAt = [][]string{
	{"statefulset-roll", "add-and-del-fail", "image-missing"},
	{"force-delete", "add-fails", "pod", "delete-in-add"},
	{"runtime-restart-in-del", "runtime-restart-in-add", "del-fails"},
}

// What a runtime calls was recorded once, with ptp. It must be the same with enilab's plugin: what the laboratory's model of the
// runtime was corrected to is then also what this CNI sees.
var _ = specs("the calls that kubelet and containerd make", Label("calls"), func(b *bed) {
	It("are the recorded ones, with this plugin too", func(ctx SpecContext) {
		shim := got(calls.Compile(ctx, calls.Shim))
		api := func(ctx context.Context, verb, uri, contentType string, body []byte) ([]byte, error) {
			return b.Client().CoreV1().RESTClient().Verb(verb).RequestURI(uri).SetHeader("Content-Type", contentType).Body(body).DoRaw(ctx)
		}
		which := livesAt
		if os.Getenv("ENILAB_E2E_CALLS") == "all" {
			which = allLivesAt
		}
		errs := make(chan error, len(which))
		for i, names := range which {
			n := b.Nodes()[i]
			bench := &calls.Bench{API: api, Node: n.Name, Plugin: "aws-cni", Restart: n.Restart, Image: podImage, Log: say}
			DeferCleanup(func(ctx SpecContext) { check(bench.Uninstall(ctx)) }, NodeTimeout(time.Minute))
			go func() { errs <- liveAgain(ctx, bench, shim, names) }()
		}
		var all []error
		for range which {
			all = append(all, <-errs)
		}
		check(errors.Join(all...))
	}, NodeTimeout(15*time.Minute))
})

// liveAgain lives lives on a node, and says where the calls were others than the recorded ones.
func liveAgain(ctx context.Context, bench *calls.Bench, shim []byte, names []string) error {
	if err := bench.Install(ctx, shim); err != nil {
		return err
	}
	for _, name := range names {
		for _, l := range calls.Lives() {
			if l.Name != name {
				continue
			}
			recording, err := calls.Record(ctx, bench, l)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", name, bench.Node, err)
			}
			runs, err := calls.Read(bytes.NewReader(recording))
			if err != nil {
				return err
			}
			if diff := calls.Differs(name, calls.Text(runs)); diff != "" {
				return fmt.Errorf("%s on %s (%s): the calls are not the recorded ones:\n%s", name, bench.Node, l.Says, diff)
			}
		}
	}
	return nil
}
