package kind

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/vpc"
)

// Where a node finds the cloud. The metadata's address is the real one. Its server listens at another port: at the real one it would keep every pod
// of the node's network, such as an ingress controller, from listening there at all addresses.
const (
	imdsAddr = "169.254.169.254"
	imdsPort = 1692
	ec2Addr  = "127.0.0.1:4566"
)

// EC2Endpoint is AWS_ENDPOINT_URL_EC2 of a daemon on a node.
const EC2Endpoint = "http://" + ec2Addr

// Hooks watch the cloud. They run in the goroutine that owns it: they may use the model, and must not block.
type Hooks struct {
	// Arrived is asked about a request before and after it is executed; true: its caller dies now, and there is no answer.
	Arrived func(n *Node, a ec2.Action, after bool) bool
	// Asked is told of a request that is about to be executed.
	Asked func(n *Node, r *ec2.Request)
	// Served is told of a request and its answer.
	Served func(n *Node, r *ec2.Request, resp *ec2.Response)
	// Happened is told what happened, before the VPC follows it. The Node is nil for an ENI that is on none.
	Happened func(n *Node, e *ec2.Event)
	// Rebooted is told that a machine's processes and namespaces have ended.
	Rebooted func(n *Node)
}

// Cloud calls f with EC2's model, alone, and waits until it has returned.
func (c *Cluster) Cloud(f func(now time.Duration, m *ec2.Cloud)) {
	c.loop.mail.Ask(func() { f(c.loop.now(), c.cloud) })
}

// Now is the models' clock: CLOCK_BOOTTIME, as the daemons'.
func (c *Cluster) Now() time.Duration { return c.loop.now() }

// pump lets what has happened at EC2 happen in the VPC, and waits for what happens next.
func (c *Cluster) pump() {
	if c.cloud == nil {
		return
	}
	c.cloud.Advance(c.loop.now())
	for {
		list := append([]ec2.Event(nil), c.cloud.Events()...)
		if len(list) == 0 {
			break
		}
		for i := range list {
			c.happened(&list[i])
		}
	}
	if at, ok := c.cloud.Next(); ok && (at < c.due || c.due <= c.loop.now()) {
		c.due = at
		c.loop.after(at-c.loop.now(), func() {
			if c.due == at {
				c.due = models.Never
			}
		})
	}
}

// happened makes the VPC follow the model.
func (c *Cluster) happened(e *ec2.Event) {
	n := c.byInst[e.Instance]
	if c.cfg.Hooks.Happened != nil {
		c.cfg.Hooks.Happened(n, e)
	}
	c.fail(machine.Follow(c.network, c.cloud, e))
	switch {
	case n == nil:
	case e.Kind == ec2.LinkPlugged:
		c.plug(n, e.MAC)
	case e.Kind == ec2.LinkUnplugged:
		delete(n.links, e.MAC)
	case e.Kind == ec2.InstanceTerminated:
		c.terminate(n)
	}
}

// plug gives a machine a further ENI's link. One that is restarting gets it with the others, see plugAll.
func (c *Cluster) plug(n *Node, mac string) {
	ns := n.Netns()
	if ns == nil {
		return
	}
	if _, err := n.links.Plug(c.network, ns, mac); err != nil && alive(n.PID()) {
		c.fail(fmt.Errorf("%s: %w", n.Name, err))
	}
}

// plugAll gives a machine that has restarted its ENIs again, in their order and without gaps, as a boot does.
func (c *Cluster) plugAll(n *Node) {
	for mac := range n.links {
		if mac != n.mac {
			delete(n.links, mac)
			c.fail(c.network.Unplug(mac))
		}
	}
	for _, l := range c.cloud.Links(n.Instance) {
		c.plug(n, l.MAC)
	}
}

// serve opens the cloud's endpoints inside a node.
func (c *Cluster) serve(n *Node) error {
	b := &backend{c, n}
	imds := netip.AddrPortFrom(netip.MustParseAddr(imdsAddr), imdsPort)
	if err := vpc.Redirect(n.Netns(), netip.AddrPortFrom(imds.Addr(), 80), imds); err != nil {
		return fmt.Errorf("serve the metadata of %s: %w", n.Name, err)
	}
	web := map[string]*http.Server{
		imds.String(): imdsserver.Server(imdsserver.Handler(imdsserver.Config{View: b.metadata, Now: c.loop.now, Role: "node"})),
		ec2Addr:       ec2server.Server(ec2server.Handler(b)),
	}
	for addr, s := range web {
		var l net.Listener
		var err error
		if e := vpc.Do(n.Netns(), func() error { l, err = net.Listen("tcp", addr); return nil }); e != nil {
			return e
		}
		if err != nil {
			return fmt.Errorf("listen on %s inside %s: %w", addr, n.Name, err)
		}
		n.mu.Lock()
		n.servers = append(n.servers, s)
		n.mu.Unlock()
		go func() { _ = s.Serve(l) }()
	}
	return nil
}

// backend carries a node's requests to the model.
type backend struct {
	c *Cluster
	n *Node
}

// Do makes a request to EC2 travel, as the model says.
func (b *backend) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	request := *r
	request.Caller = b.n.Instance
	return b.c.loop.mail.Await(ctx, func(answer func(*ec2.Response)) { b.c.sender(b.n).Send(&request, answer) })
}

// sender is how a machine's requests travel, under the eyes of whoever watches.
func (c *Cluster) sender(n *Node) *machine.Sender {
	h := &c.cfg.Hooks
	return &machine.Sender{EC2: c.cloud, Now: c.loop.now, After: c.loop.after,
		Trap: func(a ec2.Action, after bool) bool { return h.Arrived != nil && h.Arrived(n, a, after) },
		Asked: func(r *ec2.Request) {
			if h.Asked != nil {
				h.Asked(n, r)
			}
		},
		Served: func(r *ec2.Request, answer *ec2.Response) {
			if h.Served != nil {
				h.Served(n, r, answer)
			}
		}}
}

// metadata is the instance's view; a silent service hangs for as long as a caller waits.
func (b *backend) metadata(ctx context.Context) (view ec2.IMDS, ok bool) {
	b.c.loop.mail.Ask(func() {
		if view, ok = b.c.cloud.IMDS(b.c.loop.now(), b.n.Instance); ok {
			view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
		}
	})
	if !ok {
		select {
		case <-time.After(models.HangTimeout):
		case <-ctx.Done():
		case <-b.c.loop.mail.Closed():
		}
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	return view, ok
}
