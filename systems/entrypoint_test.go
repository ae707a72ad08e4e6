package systems

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEntrypointRunsWhereItsFilesAre: what the image runs takes the place of the steps that stand for it, and not without the files that it needs.
func TestEntrypointRunsWhereItsFilesAre(t *testing.T) {
	o := place(t)
	folder := filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.9.1")
	aws(t, folder, "")
	described := find(t, "amazon-vpc-cni-k8s@1.9.1", o)
	if described.Enters() || !slices.Contains(described.Upgrade.Steps, StepConflist) || !strings.Contains(strings.Join(described.Notes, "\n"), "the folder has no entrypoint.sh") {
		t.Errorf("without its script: entrypoint %v, steps %v, notes %q", described.Daemon.Entrypoint, described.Upgrade.Steps, described.Notes)
	}

	write(t, filepath.Join(folder, "entrypoint.sh"), []byte("#!/bin/bash\n"), 0o755)
	if s := find(t, "amazon-vpc-cni-k8s@1.9.1", o); s.Enters() || !strings.Contains(strings.Join(s.Notes, "\n"), "the folder has no grpc-health-probe") {
		t.Errorf("without the probe that its script asks it is not run: entrypoint %v, notes %q", s.Daemon.Entrypoint, s.Notes)
	}

	write(t, filepath.Join(folder, "grpc-health-probe"), native(), 0o755)
	s := find(t, "amazon-vpc-cni-k8s@1.9.1", o)
	if !s.Enters() || s.Daemon.Entrypoint.Argv[0] != "/app/entrypoint.sh" || s.Daemon.Argv[0] != "/app/aws-k8s-agent" {
		t.Fatalf("expected the script to start the daemon, found %v and %v; notes %q", s.Daemon.Entrypoint, s.Daemon.Argv, s.Notes)
	}
	if want := []Step{StepStop, StepFiles, StepInit, StepConflist, StepStart, StepServes}; !slices.Equal(s.Upgrade.Steps, want) {
		t.Errorf("expected the configuration to lie ready for the script, steps %v, found %v", want, s.Upgrade.Steps)
	}
	if i := slices.IndexFunc(s.Files, func(f File) bool { return f.From == "aws-cni" }); s.Files[i].To != "/app/aws-cni" {
		t.Errorf("expected the plugin where the image has it, found %s", s.Files[i].To)
	}
	text, err := s.Template()
	if err != nil || s.Conflist.To != "/app" || !strings.Contains(string(text), "__VETHPREFIX__") {
		t.Errorf("expected a configuration in /app that the script fills in, found %s in %s, %v", text, s.Conflist.To, err)
	}
	for _, want := range []Need{{"iptables", "amazon-vpc-cni-k8s 1.9.1"}, {"tee", "amazon-vpc-cni-k8s 1.9.1's entrypoint.sh"}} {
		if !slices.Contains(s.Needs(), want) {
			t.Errorf("expected that %s executes %s, found %v", want.By, want.Tool, s.Needs())
		}
	}
	if slices.ContainsFunc(described.Needs(), func(n Need) bool { return n.Tool == "tee" }) {
		t.Errorf("a script that is not run executes nothing, found %v", described.Needs())
	}
}
