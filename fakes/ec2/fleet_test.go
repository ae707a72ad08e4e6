package ec2

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// booting is a node that is about to make its next call: first Create, then Attach, then Modify, for each of its interfaces.
type booting struct {
	at   time.Duration // when the call arrives
	back time.Duration
	node int
	left int // interfaces still to be asked for
	req  Request
}

// boots are nodes in order of arrival: a heap.
type boots []*booting

func (b boots) Len() int { return len(b) }
func (b boots) Less(i, j int) bool {
	return b[i].at < b[j].at || b[i].at == b[j].at && b[i].node < b[j].node
}
func (b boots) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *boots) Push(x any)   { *b = append(*b, x.(*booting)) }
func (b *boots) Pop() any {
	old := *b
	x := old[len(old)-1]
	*b = old[:len(old)-1]
	return x
}

// send has the node's next call leave now.
func (b *booting) send(c *Cloud, now time.Duration) {
	there, back := c.Travel(&b.req)
	b.at, b.back = now+there, back
}

// answered makes the next request of an answer; false when the node has all it wants.
func (b *booting) answered(p *Response) bool {
	switch {
	case p.Code != "": // throttled, or the interface is not known everywhere yet: the same again
	case b.req.Action == CreateNetworkInterface:
		b.req.Action, b.req.ENI = AttachNetworkInterface, p.ENI.ID
	case b.req.Action == AttachNetworkInterface:
		b.req.Action, b.req.Attachment = ModifyNetworkInterfaceAttribute, p.Attachment
	default:
		b.left--
		b.req.DeviceIndex++
		b.req.ClientToken = fmt.Sprint(b.node, b.left)
		b.req.Action, b.req.Attachment = CreateNetworkInterface, ""
	}
	return b.left > 0
}

// 500 nodes boot at once and want two more interfaces each, with the latencies and lags that are the default and retries as fast as
// answers come: the last of 1000 attaches is accepted after what the published bucket says, (1000 − 50) / 5 = 190 s, within 2 %.
func TestFleetBootTakesWhatTheBucketsSay(t *testing.T) {
	const nodes, each, want = 500, 2, 190 * time.Second
	c := New(Config{}, 1)
	sub := c.Subnets()[0].ID
	var b boots
	for n := range nodes {
		i := must.Get(c.Launch(0, LaunchSpec{Type: "m5.large"}))(t)
		x := &booting{node: n, left: each, req: Request{Action: CreateNetworkInterface, Caller: i, Subnet: sub, Instance: i, DeviceIndex: 1,
			SecondaryCount: 9, ClientToken: fmt.Sprint(n, each), DeleteOnTermination: true}}
		x.send(c, 0)
		heap.Push(&b, x)
	}
	var last time.Duration
	for len(b) > 0 {
		x := b[0]
		p := c.Serve(x.at, &x.req)
		if p.Code == "" && x.req.Action == AttachNetworkInterface {
			last = x.at
		}
		if !x.answered(&p) {
			heap.Pop(&b)
			continue
		}
		x.send(c, x.at+x.back)
		heap.Fix(&b, 0)
	}
	t.Logf("the last attach was accepted at %v, of %d calls", last, c.Calls(AttachNetworkInterface).Total)
	if last < want || last > want+want/50 {
		t.Errorf("the last attach was accepted at %v, the buckets say %v", last, want)
	}
	if n := c.Calls(AttachNetworkInterface).OK; n != nodes*each {
		t.Errorf("%d attaches succeeded, want %d", n, nodes*each)
	}
	c.Advance(c.now + time.Minute)
	if n := c.CountENIs(InUse); n != nodes*(1+each) {
		t.Errorf("%d interfaces are in use, want %d", n, nodes*(1+each))
	}
}

// The ledger says which node was throttled how often, and agrees with itself.
func TestFleetLedger(t *testing.T) {
	c := New(Config{}, 1)
	var ids []InstanceID
	for range 60 {
		i := must.Get(c.Launch(0, LaunchSpec{Type: "m5.large"}))(t)
		ids = append(ids, i)
	}
	for _, i := range ids {
		c.Serve(0, &Request{Action: DetachNetworkInterface, Caller: i, Attachment: "eni-attach-x"})
	}
	ok := map[InstanceID]string{}
	for _, row := range c.LedgerRows() {
		if row.Calls != 1 {
			t.Errorf("%+v", row)
		}
		ok[row.Node] = row.Outcome.String()
	}
	for k, i := range ids {
		want := "failed"
		if k >= 50 {
			want = "throttled"
		}
		if ok[i] != want {
			t.Errorf("node %d: %s, want %s", k, ok[i], want)
		}
	}
}
