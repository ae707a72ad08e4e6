package netns

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/mutants"
)

// PlayDaemon is a mutant in ipamd's place: args are the mutant's name and then ipamd's arguments. It returns the exit code.
func PlayDaemon(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "play: which mutant? enilab mutants lists them")
		return 2
	}
	m, ok := mutants.ByName(args[0])
	if !ok {
		fmt.Fprintf(os.Stderr, "play: unknown mutant %q; enilab mutants lists them\n", args[0])
		return 2
	}
	return daemon.Main(args[1:], partsOf(&m))
}

// partsOf is what the mutant puts in the place of the daemon's own.
func partsOf(m *mutants.Mutant) daemon.Parts {
	p := daemon.Parts{Policy: ipam.Sound(), PolicyName: m.Name, Input: m.Input, Effects: m.Effects, Plan: m.Plan}
	if m.Policy != nil {
		m.Policy(p.Policy)
	}
	if m.Shell&(mutants.AckEarly|mutants.DropSaves|mutants.RefuseOtherVersions) != 0 {
		p.Store = func(s daemon.Store) daemon.Store { return &badStore{Store: s, shell: m.Shell} }
	}
	if m.Shell&mutants.RetryCalls != 0 {
		p.Cloud = func(c daemon.Cloud) daemon.Cloud { return retryingCloud{c} }
	}
	return p
}

// badStore is a mutant's store.
type badStore struct {
	daemon.Store
	shell mutants.Shell
	last  chan struct{} // closed when the Commit before is done (AckEarly)
}

func (s *badStore) Read() ([]ipam.Row, int, error) {
	rows, written, err := s.Store.Read()
	if err == nil && s.shell&mutants.RefuseOtherVersions != 0 && written != 0 && written != recordVersion() {
		return nil, written, fmt.Errorf("the records are of version %d, expected %d", written, recordVersion())
	}
	return rows, written, err
}

// recordVersion is what the daemon was told to write.
func recordVersion() int {
	v := ipam.Version
	if i := slices.Index(os.Args, "--record-version"); i >= 0 && i+1 < len(os.Args) {
		_, _ = fmt.Sscan(os.Args[i+1], &v)
	}
	return v
}

func (s *badStore) Commit(saves []*ipam.Save) error {
	switch {
	case s.shell&mutants.DropSaves != 0:
		return nil
	case s.shell&mutants.AckEarly != 0:
		before, done := s.last, make(chan struct{})
		s.last = done
		later := slices.Clone(saves)
		go func() {
			defer close(done)
			if before != nil {
				<-before // in their order
			}
			_ = s.Store.Commit(later)
		}()
		return nil
	}
	return s.Store.Commit(saves)
}

// retryingCloud repeats what EC2 refuses by itself, as an SDK does by default.
type retryingCloud struct{ daemon.Cloud }

// sdkAttempts is how often: until it works, or nearly.
const sdkAttempts = 1000

func (c retryingCloud) Call(ctx context.Context, call *ipam.Call) ipam.Result {
	r := c.Cloud.Call(ctx, call)
	for i := 1; i < sdkAttempts && r.Class != ipam.OK && ctx.Err() == nil; i++ {
		r = c.Cloud.Call(ctx, call)
	}
	return r
}
