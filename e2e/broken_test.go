package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where the broken daemon is, on the nodes and in its containers. It is a folder of its own, for pods mount the one
// of peer.
const (
	brokenDir    = "/opt/enilab-e2e-broken"
	brokenDaemon = brokenDir + "/broken"
)

// breakDaemons puts e2e/broken in the place of all nodes' daemons at once. Nodes and CoreDNS had ours before: the
// cluster itself is sound. Whether the broken one ever becomes Ready nobody waits for.
func (b *bed) breakDaemons(ctx context.Context) error {
	for _, n := range b.Nodes() {
		if err := putProgram(n, brokenDaemon, b.daemon); err != nil {
			return err
		}
	}
	b.isBroken = true
	raw, err := b.Manifests(b.daemonOptions(nil))
	if err != nil {
		return err
	}
	if err := b.Apply(ctx, raw); err != nil {
		return err
	}
	err = awaited(ctx, rollLimit, "the controller to see the broken daemon", func(ctx context.Context) (string, error) {
		d, err := b.Client().AppsV1().DaemonSets("kube-system").Get(ctx, "aws-node", metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration == d.Generation {
			return "", err
		}
		return "it has not", nil
	})
	if err != nil {
		return err
	}
	pods := b.Client().CoreV1().Pods("kube-system")
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, listOf("k8s-app=aws-node")); err != nil {
		return err
	}
	return awaited(ctx, rollLimit, "the broken daemon to run on every node", func(ctx context.Context) (string, error) {
		for _, n := range b.Nodes() {
			if p, err := daemonProcess(n); err != nil || p.args[0] != brokenDaemon {
				return "it does not on " + n.Name, nil
			}
		}
		return "", nil
	})
}

// hasStruck says that the broken daemon never did what is wrong with it: then green specs say nothing.
func (b *bed) hasStruck() error {
	struck := int64(0)
	for _, n := range b.Nodes() {
		if f, err := os.Stat(filepath.Join(n.Root(), brokenDir, "struck")); err == nil {
			struck += f.Size()
		}
	}
	say(fmt.Sprintf("%s has struck %d times", b.broken, struck))
	if struck == 0 {
		return fmt.Errorf("%s has never struck: that specs are green says nothing", b.broken)
	}
	return nil
}
