package netns

import (
	"errors"

	"google.golang.org/grpc"
)

// Where the plugin of amazon-vpc-cni-k8s looks for a network policy agent, which its manifest runs beside the daemon: a socket from 1.20.2 on, a port
// before.
const (
	policySocket = "/var/run/aws-node/npa.sock"
	policyAddr   = "127.0.0.1:50052"
)

// newPolicyAgent is one that is content with everything.
func newPolicyAgent() *grpc.Server {
	return grpc.NewServer(grpc.ForceServerCodec(plainBytes{}), grpc.UnknownServiceHandler(content))
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
