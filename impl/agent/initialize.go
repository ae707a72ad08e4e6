package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/enilab/enilab/impl/cloud"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/settings"
)

// Bounds of `ipamd init`, in real time. Kubelet starts an init container that failed again, with a pause.
const (
	initBound = time.Minute
	initPause = time.Second
)

// initialize is `ipamd init`: it does on the primary link what amazon-vpc-cni-k8s's init container does. It needs no more than the daemon.
func initialize(s *settings.Settings) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
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
	plan := dataplane.InitPlan(dataplane.HostSpec{PrimaryMAC: mac, ExternalSNAT: s.IPAM.ExternalSNAT, NodePort: s.IPAM.NodePort, MTU: s.IPAM.MTU})
	if done, fault := k.Apply(plan, nil); fault != nil {
		return exitCode(fmt.Errorf("init: after %d of %d operations: %w; it needs CAP_NET_ADMIN in the host's network namespace", done, len(plan.Ops), fault))
	}
	for i := range plan.Ops {
		log.Info("done", "operation", plan.Ops[i].String())
	}
	return exitOK
}

// primaryMAC asks metadata until it answers.
func primaryMAC(ctx context.Context, s *settings.Settings, log *slog.Logger) (string, error) {
	c, err := cloud.New(ctx, cloud.Config{Timeout: s.HTTPTimeout, Log: log})
	if err != nil {
		return "", err
	}
	for {
		m, err := c.Metadata(ctx)
		if err == nil {
			return m.Instance.PrimaryMAC, nil
		}
		log.Warn("instance metadata does not answer; init tries again", "err", err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(initPause):
		}
	}
}
