package netns

import (
	"crypto/tls"

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
