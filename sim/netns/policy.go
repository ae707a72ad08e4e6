package netns

import (
	"errors"
	"net"
	"os"

	"google.golang.org/grpc"
)

// Where the plugin of amazon-vpc-cni-k8s looks for a network policy agent, which its manifest runs beside the daemon: a socket from 1.20.2 on, a port
// before.
const (
	policySocket = "/var/run/aws-node/npa.sock"
	policyAddr   = "127.0.0.1:50052"
)

// policed gives a node a network policy agent that is content with everything: policies are nothing that is judged here.
func (k described) policed(n *instance) error {
	_ = os.Remove(n.box.Root() + policySocket)
	socket, err := net.Listen("unix", n.box.Root()+policySocket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(plainBytes{}), grpc.UnknownServiceHandler(content))
	n.sockets = append(n.sockets, stopper(server.Stop))
	go func() { _ = server.Serve(socket) }()
	if n.policed {
		return nil
	}
	n.policed = true
	port, err := n.listen("tcp", policyAddr)
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(port) }()
	return nil
}

// content answers any call with field 1, success, being true.
func content(_ any, s grpc.ServerStream) error {
	var asked []byte
	if err := s.RecvMsg(&asked); err != nil {
		return err
	}
	return s.SendMsg([]byte{1 << 3, 1})
}

// plainBytes is a codec for who need not know what messages say.
type plainBytes struct{}

func (plainBytes) Name() string { return "proto" }

func (plainBytes) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.New("expected bytes")
	}
	return b, nil
}

func (plainBytes) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.New("expected bytes")
	}
	*b = append([]byte(nil), data...)
	return nil
}

// stopper is a Closer of what only stops.
type stopper func()

func (s stopper) Close() error { s(); return nil }
