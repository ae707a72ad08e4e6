// Command broken is ipamd with a fault, by which the suite proves that it notices: ENILAB_E2E_BROKEN has it run in
// the daemon's place. It is in no image; the suite puts it onto the nodes.
//
//	broken same-address [IPAMD-ARGUMENTS]   every pod gets the address that the daemon's first one got
//	broken no-del [IPAMD-ARGUMENTS]         no DEL is heard, and none answered
//	broken down                             serves nothing, until SIGTERM
//
// Each time that the fault does something it adds a byte to the file struck beside the program: a fault that never
// struck proves nothing.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "broken: how? see go doc ./e2e/broken")
		os.Exit(2)
	}
	var parts daemon.Parts
	switch how := os.Args[1]; how {
	case "same-address":
		var a oneAddress
		parts = daemon.Parts{PolicyName: how, Plan: a.plan, Effects: a.effects}
	case "no-del":
		parts = daemon.Parts{PolicyName: how, Input: noDel}
	case "down":
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		strike()
		<-ctx.Done()
		return
	default:
		fmt.Fprintf(os.Stderr, "broken: what is %q? see go doc ./e2e/broken\n", how)
		os.Exit(2)
	}
	os.Exit(daemon.Main(os.Args[2:], parts))
}

// strike notes that the fault did something.
func strike() {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), "struck"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(".")
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "broken:", err)
	}
}

// noDel turns every DEL into none: of the plugin's and of those that wait in files.
func noDel(in ipam.Input) ipam.Input {
	if _, ok := in.(ipam.Del); !ok {
		return in
	}
	strike()
	return nil
}

// oneAddress gives every pod the first address that there was. Plans run in several goroutines.
type oneAddress struct {
	mu    sync.Mutex
	first netip.Addr
}

// put writes it in another's place.
func (o *oneAddress) put(a *netip.Addr) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.first.IsValid() {
		o.first = *a
	}
	if *a != o.first {
		strike()
	}
	*a = o.first
}

// plan has a pod's address, its route and its rules be the first one's.
func (o *oneAddress) plan(lane ipam.Lane, p dataplane.Plan) dataplane.Plan {
	if lane.Kind != ipam.PodLane {
		return p
	}
	out := dataplane.Plan{Ops: append([]dataplane.Op(nil), p.Ops...)}
	for i := range out.Ops {
		switch op := &out.Ops[i]; op.Kind {
		case dataplane.PodAddress:
			o.put(&op.Addr)
		case dataplane.EnsureRoute:
			if a := op.Dst.Addr(); op.Dst.IsSingleIP() {
				o.put(&a)
				op.Dst = netip.PrefixFrom(a, a.BitLen())
			}
		case dataplane.EnsureRule:
			if op.Addr.IsValid() {
				o.put(&op.Addr)
			}
		}
	}
	return out
}

// effects has the plugin be told the first address.
func (o *oneAddress) effects(effs []ipam.Effect) []ipam.Effect {
	for i, e := range effs {
		r, ok := e.(*ipam.Reply)
		if !ok || r.Verb != ipam.VerbAdd || r.Err != nil {
			continue
		}
		told := *r
		o.put(&told.Address)
		effs[i] = &told
	}
	return effs
}
