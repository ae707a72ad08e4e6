// Command ask is the IPAM plugin of the example in docs/systems.md: it asks addressd for a container's address.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

const socket = "/run/handout.sock"

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }}, version.All, "ask: addresses of addressd")
}

func add(args *skel.CmdArgs) error {
	var conf struct {
		types.NetConf
		IPAM struct {
			Routes []*types.Route `json:"routes"`
		} `json:"ipam"`
	}
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return err
	}
	text, err := ask(http.MethodPost, args)
	if err != nil {
		return err
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return err
	}
	result := &types100.Result{CNIVersion: conf.CNIVersion, Routes: conf.IPAM.Routes, IPs: []*types100.IPConfig{{
		Address: net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
		Gateway: p.Masked().Addr().Next().AsSlice(),
	}}}
	return types.PrintResult(result, conf.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	_, err := ask(http.MethodDelete, args)
	return err
}

// ask is one request to the daemon. Who gets no answer is called again: the runtime sees to that.
func ask(method string, args *skel.CmdArgs) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequest(method, "http://addressd/"+args.ContainerID+":"+args.IfName, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", types.NewError(types.ErrTryAgainLater, "addressd does not answer", err.Error())
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("addressd: %s", strings.TrimSpace(string(body)))
	}
	return string(body), nil
}
