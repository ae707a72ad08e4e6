package vpc

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// TestTap: what a namespace has sent and received on its cables is in the file, in the order of its instants, and its loopback is not.
func TestTap(t *testing.T) {
	f := newNetwork(t)
	tap := must.Get(OpenTap(f.Namespace()))(t)
	i := newInstance(t, f)
	i.eth(0, "02:00:00:00:00:01", "10.0.1.0/24", "10.0.1.10")
	if !i.ping("10.0.1.10", f.InternetAddr().Addr().String(), 5*time.Second) { // answered by the router, over lo's address
		t.Fatal("the internet does not answer")
	}
	var b bytes.Buffer
	must.Do(t, tap.Write(&b))
	head := b.Next(24)
	if magic, link := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[20:]); magic != 0xa1b23c4d || link != 276 {
		t.Fatalf("expected nanoseconds and LINKTYPE_LINUX_SLL2, found %x, %d", magic, link)
	}
	var last time.Duration
	icmp := 0
	for b.Len() > 0 {
		h := b.Next(16)
		word := func(k int) uint32 { return binary.LittleEndian.Uint32(h[4*k:]) }
		at := time.Duration(word(0))*time.Second + time.Duration(word(1))
		if at < last || time.Since(time.Unix(0, int64(at))).Abs() > time.Hour {
			t.Errorf("a packet of %v after one of %v", at, last)
		}
		last = at
		p := b.Next(int(word(2)))
		if word(2) > word(3) || len(p) < 20 {
			t.Fatalf("a packet with %d of %d bytes", word(2), word(3))
		}
		if index := binary.BigEndian.Uint32(p[4:]); index == 1 {
			t.Error("the loopback's packet is there")
		}
		if binary.BigEndian.Uint16(p) == 0x0800 && p[20]>>4 == 4 && p[29] == 1 {
			icmp++
		}
	}
	if icmp < 2 {
		t.Errorf("expected a ping and its answer, found %d packets of ICMP", icmp)
	}
}
