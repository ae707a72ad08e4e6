package netns

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path"

	ec2server "github.com/enilab/enilab/fakes/ec2/server"
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
	// token is the service account's.
	token = "enilab"
)

// outskirts are what a world with described systems serves beside the models' own endpoints.
type outskirts struct {
	api  *apiserver.Server
	ca   []byte
	cert tls.Certificate
}

func (w *World) surround() error {
	if w.around != nil {
		return nil
	}
	a, err := authority.New(nil)
	if err != nil {
		return err
	}
	cert, err := a.Leaf(ec2Name, "kubernetes.default.svc", kubeHost)
	if err != nil {
		return err
	}
	w.around = &outskirts{apiserver.New(w.WholeCluster()), a.PEM(), cert}
	return nil
}

// listen gives a node what systems find by themselves: names, certificates, a service account, and who answers there.
func (k described) listen(n *instance) error {
	w := k.w
	config, err := apiserver.Kubeconfig("http://"+kubeAddr, "", nil)
	if err != nil {
		return err
	}
	files := map[string][]byte{authorityPath: w.around.ca, kubeconfigPath: config,
		"/etc/hosts": fmt.Appendf(nil, "127.0.0.1 localhost\n127.0.1.1 %s\n%s %s\n", n.Name(), ec2NameAddr, ec2Name)}
	for name, data := range apiserver.ServiceAccount(token, "kube-system", w.around.ca) {
		files[path.Join(apiserver.AccountFolder, name)] = data
	}
	for name, data := range files {
		if err := n.box.WriteFile(name, data); err != nil {
			return err
		}
	}
	for addr, s := range map[string]*http.Server{
		ec2NameAddr + ":443":                 ec2server.Server(ec2server.Handler(&backend{w, n})),
		net.JoinHostPort(kubeHost, kubePort): apiserver.Serve(w.around.api),
	} {
		l, err := n.listen("tcp", addr)
		if err != nil {
			return err
		}
		n.servers = append(n.servers, s)
		secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{w.around.cert}, NextProtos: []string{"http/1.1"}})
		go func() { _ = s.Serve(secure) }()
	}
	return k.policed(n)
}

// kubernetes is the API server for clients of other projects.
func (k described) kubernetes(*instance) *http.Server { return apiserver.Serve(k.w.around.api) }
