package cluster

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

// Where a node finds the cloud. The server of the metadata listens at another port: at the real one it would keep every pod
// of the node's network, such as an ingress controller, from listening there at all addresses.
const (
	imdsPort = 1692
	ec2Addr  = "127.0.0.1:4566"
)

// EC2Endpoint is AWS_ENDPOINT_URL_EC2 of a daemon on a node.
const EC2Endpoint = "http://" + ec2Addr

// happened makes the VPC follow the model.
func (c *Cluster) happened(e *ec2.Event) {
	n := c.byInst[e.Instance]
	if c.cfg.Hooks.Happened != nil {
		c.cfg.Hooks.Happened(n, e)
	}
	c.fail(machine.Follow(c.network, c.model, e))
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
	if _, err := n.links.Plug(c.network, ns, mac); err != nil && n.Alive() {
		c.fail(fmt.Errorf("%s: %w", n.Name, err))
	}
}

// killLimit is how long Docker may take to end a machine.
const killLimit = time.Minute

// terminate ends a machine whose instance is terminated. Its container stays, stopped, until the cluster is removed. Only the loop
// calls it.
func (c *Cluster) terminate(n *Node) {
	if n.Gone.Swap(true) {
		return
	}
	c.watchers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), killLimit)
		defer cancel()
		if _, err := docker(ctx, "kill", n.Name); err != nil && n.Alive() {
			c.fail(fmt.Errorf("end %s, whose instance is terminated: %w", n.Name, err))
		}
	})
}

// plugAll gives a machine that has restarted its ENIs again, in their order and without gaps, as a boot does.
func (c *Cluster) plugAll(n *Node) {
	for mac := range n.links {
		if mac != n.mac {
			delete(n.links, mac)
			c.fail(c.network.Unplug(mac))
		}
	}
	for _, l := range c.model.Links(n.Instance) {
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
		imds.String(): imdsserver.Server(imdsserver.Handler(imdsserver.Config{View: b.metadata, Now: c.Now, Role: "node"})),
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
	return b.c.mail.Await(ctx, func(answer func(*ec2.Response)) { b.c.sender(b.n).Send(&request, answer) })
}

// sender is how a machine's requests travel, under the eyes of whoever watches.
func (c *Cluster) sender(n *Node) *machine.Sender {
	h := &c.cfg.Hooks
	return &machine.Sender{EC2: c.model, Now: c.Now, After: c.After,
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
	b.c.mail.Ask(func() {
		if view, ok = b.c.model.IMDS(b.c.Now(), b.n.Instance); ok {
			view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
		}
	})
	if !ok {
		select {
		case <-time.After(models.HangTimeout):
		case <-ctx.Done():
		case <-b.c.mail.Closed():
		}
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	return view, ok
}
