package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/cloud"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/install"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/settings"
)

// Bounds of `ipamd init`, in real time. Kubelet starts an init container that failed again, with a pause.
const (
	initBound = time.Minute
	initPause = time.Second
)

// initialize is `ipamd init`: it installs the CNI plugins and does on the primary link what amazon-vpc-cni-k8s's init container does. It needs
// no more than the daemon.
//
// The plugins come first, and do not wait for metadata. On a node that has never had a network nothing runs them before the conflist is
// written, which a daemon does that serves. On a node that has one, no daemon runs at this moment, and pods come and go nevertheless: a plugin of
// this version keeps their DELs for it, where amazon-vpc-cni-k8s's would forget them.
func initialize(s *settings.Settings) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	if err := installPlugins(s, log); err != nil {
		if _, ok := errors.AsType[*install.Missing](err); ok {
			fmt.Fprintln(os.Stderr, "ipamd:", err)
			return exitMachine
		}
		return exitCode(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), initBound)
	defer cancel()
	mac, err := primaryMAC(ctx, s, log)
	if err != nil {
		return exitCode(fmt.Errorf("init: instance metadata did not name the primary network interface within %v: %w", initBound, err))
	}
	k, err := linux.Open(linux.Options{Floor: s.Floor})
	if err != nil {
		return exitCode(fmt.Errorf("init: %w", err))
	}
	defer k.Close()
	plan := primaryPlan(s, mac)
	if done, fault := k.Apply(plan, nil); fault != nil {
		return exitCode(fmt.Errorf("init: after %d of %d operations: %w; it needs CAP_NET_ADMIN in the host's network namespace", done, len(plan.Ops), fault))
	}
	for i := range plan.Ops {
		log.Info("done", "operation", plan.Ops[i].String())
	}
	return exitOK
}

// primaryPlan is what is done on the primary link.
func primaryPlan(s *settings.Settings, mac string) dataplane.Plan {
	return dataplane.InitPlan(dataplane.HostSpec{PrimaryMAC: mac, ExternalSNAT: s.IPAM.ExternalSNAT, NodePort: s.IPAM.NodePort, MTU: s.IPAM.MTU})
}

// installPlugins puts the image's CNI plugins where the node's runtime looks for them.
func installPlugins(s *settings.Settings, log *slog.Logger) error {
	if s.BinDir == "" {
		log.Info("no CNI plugins are installed: HOST_CNI_BIN_PATH is none")
		return nil
	}
	changed, err := install.Plugins(s.PluginDir, s.BinDir)
	var missing *install.Missing
	switch {
	case errors.As(err, &missing) && missing.Folder == s.BinDir:
		return fmt.Errorf("init: the node's folder of CNI plugins cannot be opened: %w; mount the host's /opt/cni/bin there (a hostPath volume), or say where it is with HOST_CNI_BIN_PATH", err)
	case errors.As(err, &missing):
		return fmt.Errorf("init: the folder of CNI plugins to install cannot be opened: %w; the image has it at /cni, say where it is with ENILAB_PLUGIN_DIR", err)
	case err != nil:
		return fmt.Errorf("init: %w", err)
	}
	log.Info("the CNI plugins are installed", "folder", s.BinDir, "new", changed)
	return nil
}

// primaryMAC asks metadata until it answers, or once where the records of this boot say it.
func primaryMAC(ctx context.Context, s *settings.Settings, log *slog.Logger) (string, error) {
	c, err := cloud.New(ctx, cloud.Config{NoEC2: s.IPAM.IMDSOnly, Timeout: s.HTTPTimeout, Log: log})
	if err != nil {
		return "", err
	}
	for {
		m, err := c.Metadata(ctx)
		if err == nil {
			return m.Instance.PrimaryMAC, nil
		}
		if mac := recordedMAC(s); mac != "" {
			log.Warn("instance metadata does not answer; the primary network interface is the one on record", "mac", mac, "err", err)
			return mac, nil
		}
		log.Warn("instance metadata does not answer; init tries again", "err", err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(initPause):
		}
	}
}

// recordedMAC is the primary interface's, as a daemon of this boot has recorded it; "" is none. What is wrong with the records the daemon says.
func recordedMAC(s *settings.Settings) string {
	if rebooted(s.RunDir, s.Checkpoint, bootID()) {
		return ""
	}
	data, _ := readBounded(s.Checkpoint, maxRecord) // what cannot be read is empty, and empty is no record
	rows, err := ipam.DecodeRun(0, clock.Wall(), data)
	if f := ipam.FactsOf(rows); err == nil && f != nil {
		return f.Instance.PrimaryMAC
	}
	return ""
}
