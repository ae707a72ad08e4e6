package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkCalls is a caller that asks for the VPCs, over a connection that stays, of a world without latency: what a served world can take
// with everything that is between the wire and the model.
func BenchmarkCalls(b *testing.B) {
	_, e := start(b, "throttle: none\n"+strings.Replace(programWorld(b), "verify-signatures: true\n", "", 1))
	addr := strings.TrimPrefix(e.EC2, "http://")
	body := "Action=DescribeVpcs&Version=2016-11-15"
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Amz-Date: 20260101T000000Z\r\n"+
		"Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-west-2/ec2/aws4_request, SignedHeaders=host;x-amz-date, Signature=%s\r\n"+
		"Content-Length: %d\r\n\r\n%s", addr, strings.Repeat("0", 64), len(body), body)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		for pb.Next() {
			if _, err := io.WriteString(conn, request); err != nil {
				b.Error(err)
				return
			}
			p, err := http.ReadResponse(r, nil)
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := io.Copy(io.Discard, p.Body); err != nil || p.StatusCode != 200 {
				b.Errorf("found %s, %v", p.Status, err)
				return
			}
		}
	})
}
