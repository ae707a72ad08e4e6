package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
)

// flow is a TCP connection from the VPC's router to a pod that sends back what it gets.
type flow struct {
	conn net.Conn
	owed int // bytes that have not come back
}

// lastPatience is how long, in real time, a flow may take that has been silent for long: the kernel repeats less and less often.
const lastPatience = 10 * time.Second

// OpenFlows dials, one after the other: pods that answer do so at once.
func (p *packets) OpenFlows(pods []cri.Truth) []bool {
	n, out := p.n, make([]bool, len(pods))
	for i, pod := range pods {
		ctx, cancel := context.WithTimeout(n.w.ctx, probed(doubtPatience))
		c, err := n.w.network.Dial(ctx, netip.AddrPortFrom(pod.Address, node.EchoPort))
		cancel()
		if err != nil {
			n.w.log("%s: no flow to %s yet: %v", n.Name(), pod.Name, err)
			continue
		}
		p.CloseFlow(pod)
		p.flows[pod.Address], out[i] = &flow{conn: c}, true
		n.w.costs.flows++
	}
	n.w.rests()
	return out
}

// CloseFlow closes the laboratory's end.
func (p *packets) CloseFlow(pod cri.Truth) {
	if f := p.flows[pod.Address]; f != nil {
		_ = f.conn.Close()
		delete(p.flows, pod.Address)
	}
}

// Echo writes to all, and then waits for each.
func (p *packets) Echo(pods []cri.Truth, last bool) []models.Answer {
	out := make([]models.Answer, len(pods))
	patience := probed(doubtPatience)
	if last {
		patience = slowed(lastPatience)
	}
	end := time.Now().Add(patience)
	for i, pod := range pods {
		f := p.flows[pod.Address]
		if f == nil {
			out[i] = models.Answer{Why: "it was closed", Cut: true}
			continue
		}
		_ = f.conn.SetWriteDeadline(end)
		if _, err := f.conn.Write([]byte{'.'}); err != nil {
			out[i] = models.Answer{Why: err.Error(), Cut: !errors.Is(err, os.ErrDeadlineExceeded)}
			continue
		}
		f.owed++
	}
	for i, pod := range pods {
		if out[i].Why == "" {
			out[i] = p.flows[pod.Address].answer(end)
		}
	}
	p.n.w.rests()
	return out
}

// answer reads what has come back.
func (f *flow) answer(end time.Time) models.Answer {
	_ = f.conn.SetReadDeadline(end)
	got, err := io.ReadAtLeast(f.conn, make([]byte, f.owed), f.owed)
	f.owed -= got
	switch {
	case err == nil:
		return models.Answer{}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return models.Answer{Why: fmt.Sprintf("%d bytes have not come back", f.owed)}
	}
	return models.Answer{Why: err.Error(), Cut: true}
}
