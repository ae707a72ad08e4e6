package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// BenchmarkAssign is one call of the SDK and back over HTTP, with no latency: what the transport costs. Assigning and unassigning
// take turns.
func BenchmarkAssign(b *testing.B) {
	w := newWorld(b)
	id, one := w.create(plenty, 0), int32(1)
	for b.Loop() {
		out, err := w.AssignPrivateIpAddresses(b.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: &one})
		if err != nil {
			b.Fatal(err)
		}
		_, err = w.UnassignPrivateIpAddresses(b.Context(), &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: []string{*out.AssignedPrivateIpAddresses[0].PrivateIpAddress}})
		if err != nil {
			b.Fatal(err)
		}
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
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header = h
	p, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, p.Body); err != nil || p.StatusCode != http.StatusOK {
		b.Fatalf("status %d, %v", p.StatusCode, err)
	}
	_ = p.Body.Close()
}
