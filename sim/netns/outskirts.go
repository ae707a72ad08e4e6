package netns

import (
	"crypto/tls"
	"errors"

	"google.golang.org/grpc"

	"github.com/enilab/enilab/fakes/kube/apiserver"
	"github.com/enilab/enilab/internal/authority"
)

// Where a system that is not told by a variable finds what stands outside of its node.
const (
	region         = "us-west-2"
	ec2Name        = "ec2." + region + ".amazonaws.com"
	ec2NameAddr    = "127.0.0.2"
	kubeHost       = "127.0.0.3"
	kubePort       = "443"
	authorityPath  = "/etc/enilab/ca.crt"
	kubeconfigPath = "/etc/enilab/kubeconfig"
	accountToken   = "enilab" // the service account's
)

// outskirts are what a world with described systems serves beside the models' own endpoints.
type outskirts struct {
	api  *apiserver.Server
	ca   []byte
	cert tls.Certificate
}

func newOutskirts(cluster apiserver.Cluster) (*outskirts, error) {
	a, err := authority.New(nil)
	if err != nil {
		return nil, err
	}
	cert, err := a.Leaf(ec2Name, "kubernetes.default.svc", kubeHost)
	if err != nil {
		return nil, err
	}
	return &outskirts{apiserver.New(cluster), a.PEM(), cert}, nil
}

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
