package kind

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/vpc"
)

const never = time.Duration(math.MaxInt64)

// Where a node finds the cloud. The metadata's address is the real one.
const (
	imdsAddr = "169.254.169.254"
	ec2Addr  = "127.0.0.1:4566"
)

// EC2Endpoint is AWS_ENDPOINT_URL_EC2 of a daemon on a node.
const EC2Endpoint = "http://" + ec2Addr

// How long a caller waits for what does not answer, as in the other worlds.
const (
	sdkTimeout  = 10 * time.Second // HTTP_TIMEOUT
	hangTimeout = 3 * time.Second  // of metadata
)

// Hooks watch the cloud. They run in the goroutine that owns it: they may use the model, and must not block.
type Hooks struct {
	// Arrived is asked about a request before and after it is executed; true: its caller dies now, and there is no answer.
	Arrived func(n *Node, a ec2.Action, after bool) bool
	// Asked is told of a request that is about to be executed.
	Asked func(n *Node, r *ec2.Request)
	// Served is told of a request and its answer.
	Served func(n *Node, r *ec2.Request, resp *ec2.Response)
	// Happened is told what happened, before the fabric follows it. The Node is nil for an ENI that is on none.
	Happened func(n *Node, e *ec2.Event)
	// Rebooted is told that a machine's processes and namespaces have ended.
	Rebooted func(n *Node)
}

// Cloud calls f with EC2's model, alone, and waits until it has returned.
func (c *Cluster) Cloud(f func(now time.Duration, m *ec2.Cloud)) {
	c.loop.ask(func() { f(c.loop.now(), c.cloud) })
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
				c.due = never
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
	switch e.Kind {
	case ec2.ENICreated, ec2.ENIAttached:
		c.assignAll(e.ENI)
	case ec2.AddressAssigned:
		c.fail(c.fabric.Assign(c.cloud.MAC(e.ENI), e.Address))
	case ec2.AddressUnassigned:
		c.fail(c.fabric.Unassign(e.Address))
	case ec2.ENIDetachStarted: // traffic ends here, long before the link is gone
		if v, ok := c.cloud.ENI(e.ENI); ok {
			for _, a := range append([]netip.Addr{v.Primary}, v.Secondaries...) {
				c.fail(c.fabric.Unassign(a))
			}
		}
	case ec2.LinkPlugged:
		if n != nil {
			c.plug(n, e.MAC)
		}
	case ec2.LinkUnplugged:
		if n != nil {
			delete(n.links, e.MAC)
		}
		c.fail(c.fabric.Unplug(e.MAC))
	}
}

func (c *Cluster) assignAll(id ec2.ENIID) {
	e, ok := c.cloud.ENI(id)
	if !ok || !judge.Here(c.cloud, &e) {
		return
	}
	for _, a := range append([]netip.Addr{e.Primary}, e.Secondaries...) {
		c.fail(c.fabric.Assign(e.MAC, a))
	}
}

// MTUs in bytes: what a VPC carries, and what a driver starts with.
const (
	jumboMTU = 9001
	bootMTU  = 1500
)

// plug gives a machine a further ENI's link. One that is restarting gets it with the others, see plugAll.
func (c *Cluster) plug(n *Node, mac string) {
	if n.links[mac] != "" {
		return
	}
	ns := n.Netns()
	if ns == nil {
		return
	}
	name := n.freeName()
	n.links[mac] = name
	if err := c.fabric.Plug(ns, name, mac, jumboMTU); err != nil {
		delete(n.links, mac)
		if alive(n.PID()) {
			c.fail(fmt.Errorf("%s: plug %s: %w", n.Name, name, err))
		}
		return
	}
	if err := vpc.SetMTU(ns, name, bootMTU); alive(n.PID()) {
		c.fail(err)
	}
}

// plugAll gives a machine that has restarted its ENIs again, in their order and without gaps, as a boot does.
func (c *Cluster) plugAll(n *Node) {
	for mac := range n.links {
		if mac != n.mac {
			delete(n.links, mac)
			c.fail(c.fabric.Unplug(mac))
		}
	}
	for _, l := range c.cloud.Links(n.Instance) {
		c.plug(n, l.MAC)
	}
}

// freeName is the first ethN that no link has.
func (n *Node) freeName() string {
	taken := map[string]bool{}
	for _, name := range n.links {
		taken[name] = true
	}
	for i := 0; ; i++ {
		if name := fmt.Sprintf("eth%d", i); !taken[name] {
			return name
		}
	}
}

// serve opens the cloud's endpoints inside a node.
func (c *Cluster) serve(n *Node) error {
	b := &backend{c, n}
	web := map[string]*http.Server{
		imdsAddr + ":80": imdsserver.Server(imdsserver.Handler(imdsserver.Config{View: b.metadata, Now: c.loop.now, Role: "node"})),
		ec2Addr:          ec2server.Server(ec2server.Handler(b)),
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

var errClosed = errors.New("the cluster is closed")

// Do makes a request to EC2 travel, as the model says.
func (b *backend) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	answer := make(chan *ec2.Response, 1)
	request := *r
	if !b.c.loop.post(func() { b.c.arrive(b.n, &request, func(resp *ec2.Response) { answer <- resp }) }) {
		return ec2.Response{}, errClosed
	}
	select {
	case resp := <-answer:
		if resp == nil {
			return ec2.Response{}, errors.New("nobody answers")
		}
		return *resp, nil
	case <-ctx.Done(): // the caller is gone; the request is not
		return ec2.Response{}, ctx.Err()
	case <-b.c.loop.closed:
		return ec2.Response{}, errClosed
	}
}

// arrive is a request that has left its node. answer is called once, with nil when the answer never comes.
func (c *Cluster) arrive(n *Node, r *ec2.Request, answer func(*ec2.Response)) {
	h := &c.cfg.Hooks
	r.Caller = n.Instance
	if h.Arrived != nil && h.Arrived(n, r.Action, false) {
		answer(nil)
		return
	}
	there, back := c.cloud.Travel(r)
	c.loop.after(there, func() {
		if h.Asked != nil {
			h.Asked(n, r)
		}
		resp := c.cloud.Serve(c.loop.now(), r)
		if h.Served != nil {
			h.Served(n, r, &resp)
		}
		if resp.Code == "" && h.Arrived != nil && h.Arrived(n, r.Action, true) {
			answer(nil)
			return
		}
		if resp.Lost {
			back = sdkTimeout
		}
		c.loop.after(back, func() {
			if resp.Lost {
				answer(nil)
				return
			}
			answer(&resp)
		})
	})
}

// metadata is the instance's view; a silent service hangs for as long as a caller waits.
func (b *backend) metadata(ctx context.Context) (view ec2.IMDS, ok bool) {
	b.c.loop.ask(func() {
		if view, ok = b.c.cloud.IMDS(b.c.loop.now(), b.n.Instance); ok {
			view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
		}
	})
	if !ok {
		select {
		case <-time.After(hangTimeout):
		case <-ctx.Done():
		case <-b.c.loop.closed:
		}
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	return view, ok
}
