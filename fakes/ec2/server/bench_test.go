package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/internal/must"
)

// BenchmarkAssign is one call of the SDK and back over HTTP, with no latency: what the transport costs. Assigning and unassigning
// take turns.
func BenchmarkAssign(b *testing.B) {
	w := newWorld(b)
	id, one := w.create(plenty, 0), int32(1)
	for b.Loop() {
		out, err := w.AssignPrivateIpAddresses(b.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: &one})
		must.Do(b, err)
		_, err = w.UnassignPrivateIpAddresses(b.Context(), &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: []string{*out.AssignedPrivateIpAddresses[0].PrivateIpAddress}})
		must.Do(b, err)
	}
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkDescribe lists 81 interfaces of ten addresses: over HTTP, without the SDK.
func BenchmarkDescribe(b *testing.B) {
	w := newWorld(b)
	for range 80 {
		w.create(plenty, 9)
	}
	r := request(ok)
	const body = "Action=DescribeNetworkInterfaces&Version=2016-11-15"
	client := &http.Client{}
	for b.Loop() {
		fetch(b, client, w.url, r.Header, body)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func fetch(b *testing.B, c *http.Client, url string, h http.Header, body string) {
	b.Helper()
	r := must.Get(http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body)))(b)
	r.Header = h
	p := must.Get(c.Do(r))(b)
	if _, err := io.Copy(io.Discard, p.Body); err != nil || p.StatusCode != http.StatusOK {
		b.Fatalf("status %d, %v", p.StatusCode, err)
	}
	_ = p.Body.Close()
}

// BenchmarkMixed is what a CNI asks most, over loopback: assign an address, describe the interface by its identifier, tag it,
// unassign the address. The clients have a connection each, send what they have prepared and read no more of an answer than its
// length: what is measured is the server. At least 15,000 calls/s on two cores are wanted.
func BenchmarkMixed(b *testing.B) {
	for _, v := range []struct {
		name string
		Options
	}{{"believed", Options{}}, {"verified", Options{Keys: func(string) (string, bool) { return "secret", true }}}} {
		b.Run(v.name, func(b *testing.B) {
			w := newWorldOf(b, v.Options)
			clients := make(chan *lean, 16)
			for n := range cap(clients) {
				id, address := w.create(plenty, 0), "10.0.3."+strconv.Itoa(1+n)
				clients <- newLean(b, w,
					"Action=AssignPrivateIpAddresses&NetworkInterfaceId="+id+"&PrivateIpAddress.1="+address,
					"Action=DescribeNetworkInterfaces&NetworkInterfaceId.1="+id,
					"Action=CreateTags&ResourceId.1="+id+"&Tag.1.Key=node.k8s.amazonaws.com%2Finstance_id&Tag.1.Value="+string(w.inst),
					"Action=UnassignPrivateIpAddresses&NetworkInterfaceId="+id+"&PrivateIpAddress.1="+address,
				)
			}
			b.ReportAllocs()
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			b.SetParallelism(cap(clients) / 2)
			b.RunParallel(func(pb *testing.PB) {
				c := <-clients
				for pb.Next() {
					if err := c.call(); err != nil {
						b.Error(err)
						return
					}
				}
				clients <- c
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// lean is a client with one connection, and requests that it sends in turn.
type lean struct {
	conn     net.Conn
	r        *bufio.Reader
	requests [][]byte
	next     int
}

func newLean(t testing.TB, w *world, bodies ...string) *lean {
	host := strings.TrimPrefix(w.url, "http://")
	conn := must.Get(net.Dial("tcp", host))(t)
	t.Cleanup(func() { _ = conn.Close() })
	c := &lean{conn: conn, r: bufio.NewReader(conn)}
	for _, body := range bodies {
		c.requests = append(c.requests, dump(t, signed(t, imds.AccessKey(w.inst), "POST", w.url, body+"&Version=2016-11-15")))
	}
	return c
}

// call sends the next request, and expects an answer that is no error.
func (c *lean) call() error {
	if _, err := c.conn.Write(c.requests[c.next]); err != nil {
		return err
	}
	c.next = (c.next + 1) % len(c.requests)
	line, err := c.r.ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("found %q, %v", line, err)
	}
	length := 0
	for len(line) > 2 && err == nil {
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, err = strconv.Atoi(string(bytes.TrimSpace(v)))
			if err != nil {
				return err
			}
		}
		line, err = c.r.ReadSlice('\n')
	}
	if err == nil {
		_, err = c.r.Discard(length)
	}
	return err
}
