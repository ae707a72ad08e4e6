package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/enilab/enilab/impl/deploy"
	ourcluster "github.com/enilab/enilab/sim/kind/cluster"
)

// cluster makes the cluster that was asked for, with the specs' images.
func (a *asked) cluster(ctx context.Context) (*cluster, error) {
	up := a.enilab
	if a.control {
		up = a.plain
	}
	c, err := up(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.prepare(ctx, c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// zones is how many zones the workers are in: some of the specs need two or three.
const zones = 3

// enilab is a cluster with enilab's CNI.
func (a *asked) enilab(ctx context.Context) (*cluster, error) {
	up, err := ourcluster.Up(ctx, ourcluster.Config{Name: clusterName, Workers: a.workers, Zones: min(a.workers, zones), Proxy: a.proxy, Log: func(line string) { say("%s", line) }})
	if err != nil {
		return nil, err
	}
	c := &cluster{kubeconfig: up.Kubeconfig(), ours: up, close: up.Close}
	for _, n := range up.Nodes() {
		c.nodes = append(c.nodes, n.Name)
	}
	if err = up.LoadImage(ctx, a.archive); err == nil {
		err = up.Install(ctx, deploy.Options{Image: a.image})
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// podsOf is where the pods of the n-th node of the control get their addresses from.
func podsOf(n int) string { return fmt.Sprintf("10.250.%d.0/24", n) }

// plain is a cluster of kind's own, whose pods have the ptp plugin's links and whose nodes have a route to each other's pods.
func (a *asked) plain(ctx context.Context) (*cluster, error) {
	if err := (&ourcluster.Config{Name: clusterName, Log: func(line string) { say("%s", line) }}).Possible(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "enilab-conformance-")
	if err != nil {
		return nil, err
	}
	c := &cluster{kubeconfig: filepath.Join(dir, "kubeconfig")}
	p := kindcluster.NewProvider(kindcluster.ProviderWithDocker())
	c.close = func() error { return errors.Join(p.Delete(clusterName, c.kubeconfig), os.RemoveAll(dir)) }
	cfg := &v1alpha4.Cluster{Networking: v1alpha4.Networking{DisableDefaultCNI: true, PodSubnet: "10.250.0.0/16", KubeProxyMode: v1alpha4.ProxyMode(a.proxy)},
		Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}}}
	for range a.workers {
		cfg.Nodes = append(cfg.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
	}
	image := os.Getenv("KIND_NODE_IMAGE")
	image = cmp.Or(image, defaults.Image)
	say("creating the control, a cluster of kind's with ptp and plain routes")
	err = p.Create(clusterName, kindcluster.CreateWithV1Alpha4Config(cfg), kindcluster.CreateWithNodeImage(image),
		kindcluster.CreateWithKubeconfigPath(c.kubeconfig), kindcluster.CreateWithDisplayUsage(false), kindcluster.CreateWithDisplaySalutation(false))
	if err == nil {
		err = c.connect(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// connect gives the nodes of the control their plugin and their routes.
func (c *cluster) connect(ctx context.Context, p *kindcluster.Provider) error {
	list, err := p.ListInternalNodes(clusterName)
	if err != nil {
		return err
	}
	var addresses []string
	for _, n := range list {
		a, _, err := n.IP()
		if err != nil {
			return err
		}
		c.nodes, addresses = append(c.nodes, n.String()), append(addresses, a)
	}
	for i, node := range c.nodes {
		conflist := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"ptp","plugins":[{"type":"ptp","ipMasq":false,"mtu":1500,"ipam":{"type":"host-local",`+
			`"ranges":[[{"subnet":%q}]],"routes":[{"dst":"0.0.0.0/0"}],"dataDir":"/run/cni-ipam"}},{"type":"portmap","capabilities":{"portMappings":true}}]}`, podsOf(i))
		script := "cat > /etc/cni/net.d/10-ptp.conflist <<'EOF'\n" + conflist + "\nEOF\n" +
			// what leaves the cluster has the node's address, as on EKS
			"iptables -t nat -A POSTROUTING -s 10.250.0.0/16 ! -d 10.250.0.0/16 ! -o veth+ -m addrtype ! --dst-type LOCAL -j MASQUERADE\n"
		for j, a := range addresses {
			if j != i {
				script += "ip route add " + podsOf(j) + " via " + a + "\n"
			}
		}
		if _, err := inNode(ctx, node, script); err != nil {
			return err
		}
	}
	return nil
}

// prepare loads the specs' images, and breaks what was asked for.
func (a *asked) prepare(ctx context.Context, c *cluster) error {
	if a.images != "" {
		say("loading the specs' images")
		archive, err := os.ReadFile(a.images)
		if err != nil {
			return err
		}
		list, err := kindcluster.NewProvider(kindcluster.ProviderWithDocker()).ListInternalNodes(clusterName)
		if err != nil {
			return err
		}
		for _, n := range list {
			if err := nodeutils.LoadImageArchive(n, bytes.NewReader(archive)); err != nil {
				return fmt.Errorf("load %s into %s: %w", a.images, n, err)
			}
		}
	}
	if a.broken != "" {
		b := broken[a.broken]
		for _, node := range c.nodes {
			if _, err := inNode(ctx, node, b.install()); err != nil {
				return fmt.Errorf("break %s on %s: %w", a.broken, node, err)
			}
		}
	}
	return nil
}

// inNode runs a shell script in a node's container, and returns what it printed.
func inNode(ctx context.Context, node, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", "exec", "-i", node, "sh", "-eu")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("in %s: %w: %s", node, err, bytes.TrimSpace(out))
	}
	return string(bytes.TrimSpace(out)), nil
}

// killPeriod is how often aws-node of a worker is deleted by force.
const killPeriod = 10 * time.Second

// killDaemons deletes them, of one worker after the other, until ctx ends, and returns how many it deleted.
func killDaemons(ctx context.Context, c *ourcluster.Cluster) (killed int) {
	workers := c.Workers()
	now := int64(0)
	pods := c.Client().CoreV1().Pods("kube-system")
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return killed
		case <-time.After(killPeriod):
		}
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=aws-node", FieldSelector: "spec.nodeName=" + workers[n%len(workers)].Name})
		if err != nil {
			continue // the next ten seconds have another try
		}
		for i := range list.Items {
			if pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) == nil {
				killed++
			}
		}
	}
}
