package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// The plugin of amazon-vpc-cni-k8s asks its daemon by gRPC, since 1.23 over a socket of the same path as ours: a node whose plugin was not exchanged, or
// was exchanged back, has it beside this daemon.
const (
	foreignAdd = "/rpc.CNIBackend/AddNetwork"
	foreignDel = "/rpc.CNIBackend/DelNetwork"
	// foreignConfigs is no plugin's: aws-network-policy-agent asks it at its start, and exits when it gets no answer.
	// Since 1.23 on the same socket, before that over TCP.
	foreignConfigs = "/rpc.ConfigServerBackend/GetNetworkPolicyConfigs"
	// configsMode is the field of its answer that has the mode. The next one is MultiNICEnabled, which no node has here:
	// false is left out.
	configsMode = 1
	// foreignUnknown makes the plugin's DEL a success that touches nothing. Any other error is a success to it as well, after it has removed what
	// it believes to be the pod's routes and rules.
	foreignUnknown = "datastore: unknown pod"
	// foreignCode is gRPC's FAILED_PRECONDITION: the same again will not help.
	foreignCode = 9
)

// foreignFields are where requests have an attachment (rpc.proto of 1.23); 0, which no field has, is what a request lacks.
type foreignFields struct{ version, pod, namespace, uid, id, ifName, network int }

var (
	inAdd = foreignFields{version: 8, pod: 1, namespace: 2, id: 7, ifName: 5, network: 6}
	inDel = foreignFields{version: 9, pod: 1, namespace: 2, uid: 10, id: 8, ifName: 6, network: 7}
)

func (x foreignFields) read(message []byte) (att ipam.Attachment, pod ipam.Pod, version string, err error) {
	into := map[int]*string{x.version: &version, x.pod: &pod.Name, x.namespace: &pod.Namespace, x.uid: &pod.UID,
		x.id: &att.ContainerID, x.ifName: &att.IfName, x.network: &att.Network}
	err = grpclite.Each(message, func(f grpclite.Field) error {
		if text := into[f.Number]; text != nil {
			return f.Text(text)
		}
		return nil
	})
	return att, pod, version, err
}

// serveForeign answers amazon-vpc-cni-k8s's plugin: an ADD is told what is wrong, and a DEL is done, as one that found no daemon.
func (s *server) serveForeign(c net.Conn, said []byte, who string) {
	if err := grpclite.Serve(c, said, foreignBound, func(method string, message []byte) grpclite.Reply { return s.foreign(method, message, who, true) }); err != nil {
		s.log.Warn("a caller speaks HTTP/2, and is no plugin that ipamd knows", "who", who, "err", err)
	}
}

// foreign answers one call. Who is not trusted is told the same, and nothing is done for him.
func (s *server) foreign(method string, message []byte, who string, trusted bool) grpclite.Reply {
	switch method {
	case foreignConfigs:
		mode := s.agent.mode()
		s.log.Info("a network policy agent has asked for its mode", "who", who, "mode", mode)
		return grpclite.Reply{Message: grpclite.AppendText(nil, configsMode, mode)}
	case foreignAdd:
		att, pod, version, _ := inAdd.read(message) // as far as it can be read: it is refused in any case
		why := fmt.Sprintf("cni add %s (%s): the plugin is amazon-vpc-cni-k8s's (version %q), and the daemon of this node is enilab's ipamd: install the plugin"+
			" that belongs to it (its init container does, or ipamd init), and keep others from replacing it", pod, att, version)
		s.log.Warn("a caller is refused", "who", who, "why", why)
		return grpclite.Reply{Code: foreignCode, Text: plain.Replace(why)}
	case foreignDel:
		att, pod, version, err := inDel.read(message)
		if !trusted {
			s.log.Warn("a DEL of an older plugin of amazon-vpc-cni-k8s; install the plugin that belongs to this ipamd", "pod", pod, "attachment", att, "version", version)
			return grpclite.Reply{Code: grpclite.NotFound, Text: foreignUnknown + ": ipamd releases its address once the runtime and the kernel have lost it"}
		}
		if err == nil {
			err = ipc.WriteIntent(s.c.intentDir(), ipc.Intent{Attachment: att, Pod: pod, Version: s.c.Version})
		}
		if err != nil { // "Success" left out: the one answer after which the plugin fails, and the runtime repeats the DEL
			s.log.Error("a DEL of amazon-vpc-cni-k8s's plugin cannot be kept; its runtime is told to repeat it", "attachment", att, "who", who, "err", err)
			return grpclite.Reply{}
		}
		s.log.Warn("a DEL of amazon-vpc-cni-k8s's plugin is done as an intent; install the plugin that belongs to this ipamd", "attachment", att, "version", version)
		return grpclite.Reply{Code: grpclite.NotFound, Text: foreignUnknown + ": ipamd releases " + att.String() + " itself"}
	}
	return grpclite.Reply{Code: grpclite.Unimplemented, Text: "ipamd does not know the method " + method}
}

// hearOlder answers the plugin of amazon-vpc-cni-k8s up to 1.22 as well, which asks its daemon over TCP: without that all it has to say is that
// nobody is there. Any process on the node may connect, so no DEL is done.
func (s *server) hearOlder() {
	host, _, err := net.SplitHostPort(s.c.Rival)
	if a, bad := netip.ParseAddr(host); err != nil || bad != nil || !a.IsLoopback() {
		return
	}
	if s.older, err = net.Listen("tcp", s.c.Rival); err != nil {
		s.log.Warn("older plugins of amazon-vpc-cni-k8s cannot be told that they are not this daemon's", "err", err)
		return
	}
	l, places := s.older, make(chan struct{}, mostOlder)
	s.log.Info("ipamd answers older plugins of amazon-vpc-cni-k8s, to tell them that they are not its own", "address", l.Addr())
	s.go_(func() {
		for {
			places <- struct{}{}
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				<-places
				time.Sleep(acceptPause)
				continue
			}
			s.go_(func() { s.serveOlder(c); <-places })
		}
	})
}

// serveOlder answers one call of a client.
func (s *server) serveOlder(c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(s.ctx, func() { c.Close() })()
	who := c.RemoteAddr().String()
	err := grpclite.Serve(c, nil, foreignBound, func(method string, message []byte) grpclite.Reply { return s.foreign(method, message, who, false) })
	if err != nil && !errors.Is(err, io.EOF) {
		s.log.Debug("a caller speaks no gRPC", "who", who, "err", err)
	}
}

const (
	// mostOlder are served at once; the others wait in the listener's backlog.
	mostOlder = 8
	// foreignBound is how long a plugin that is not ours may take to ask, and to hear the answer.
	foreignBound = 5 * time.Second
)
