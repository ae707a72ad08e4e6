package netns

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"

	"google.golang.org/grpc"

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
