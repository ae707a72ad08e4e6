package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// balanceLimit bounds how long the node may take to come to rest: kubelet removes dead sandboxes once a minute, and for as long as the runtime
// has one it is not gone.
const balanceLimit = 100 * time.Second

// balanceStep is how much of the daemon's time passes meanwhile between two looks: of a sandbox that the runtime has never listed it waits
// for a word for five minutes.
const balanceStep = 20 * time.Second

// balanced waits until running pods, the daemon's books, the kernel and EC2 say the same, and nothing is left of what has ended.
func (s *scene) balanced(ctx context.Context, when string) error {
	err := awaited(ctx, balanceLimit, "the books to balance", func(ctx context.Context) (string, error) {
		why, err := s.imbalance(ctx)
		if err == nil && why != "" {
			err = s.pass(ctx, balanceStep)
		}
		return why, err
	})
	if err != nil && ctx.Err() == nil {
		if why, again := s.imbalance(ctx); again == nil && why != "" {
			return broken(judge.I5, "%s %s: %s", s.name, when, why)
		}
	}
	return err
}

// imbalance is one thing that is not as it should be at rest; "" is none.
func (s *scene) imbalance(ctx context.Context) (string, error) {
	pods, err := s.addresses(ctx)
	if err != nil {
		return "", err
	}
	v, err := s.view()
	if err != nil {
		return "", err
	}
	var assigned, all []netip.Addr
	for i := range v.Rows {
		r := &v.Rows[i]
		switch r.State {
		case ipam.Assigned:
			assigned = append(assigned, r.Address)
		case ipam.Free:
		default:
			return fmt.Sprintf("%v is %v, after %v", r.Address, r.State, r.Att), nil
		}
		all = append(all, r.Address)
	}
	if why := differ("addresses that the daemon has assigned", assigned, "addresses of pods", pods); why != "" {
		return why, nil
	}
	if n := v.View.Running + v.View.Intents + v.View.Waiting; n > 0 {
		return fmt.Sprintf("the daemon has %d operations, %d intents and %d ADDs open", v.View.Running, v.View.Intents, v.View.Waiting), nil
	}
	if len(v.View.Reasons) > 0 {
		return "the daemon is impaired: " + strings.Join(v.View.Reasons, "; "), nil
	}
	if why, err := s.residue(pods); err != nil || why != "" {
		return why, err
	}
	given, stray := s.given()
	if why := differ("addresses in the daemon's books", all, "addresses that EC2 has given the node for pods", given); why != "" {
		return why, nil
	}
	if len(stray) > 0 {
		return fmt.Sprintf("%v are attached to nothing", stray), nil
	}
	return s.leftover(len(pods))
}

// addresses are those of the node's pods that have a network of their own.
func (s *scene) addresses(ctx context.Context) (out []netip.Addr, err error) {
	list, err := s.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.node.Name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		a, err := netip.ParseAddr(p.Status.PodIP)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s has no address yet", p.Namespace, p.Name)
		}
		out = append(out, a)
	}
	return out, nil
}

// residue is what the kernel has too much or too little of.
func (s *scene) residue(pods []netip.Addr) (string, error) {
	o, err := s.observe()
	if err != nil {
		return "", err
	}
	var links, routes, to, from []netip.Addr
	for i := range o.Links {
		l := &o.Links[i]
		if _, _, _, a, ok := dataplane.ParseAlias(l.Alias); ok {
			links = append(links, a)
		} else if l.Veth && strings.HasPrefix(l.Name, vethPrefix) {
			return "link " + l.Name + " belongs to nobody", nil
		}
	}
	for _, r := range o.Routes {
		if strings.HasPrefix(r.Link, vethPrefix) {
			routes = append(routes, r.Dst.Addr())
		}
	}
	for _, r := range o.Rules {
		a, _ := r.Addr()
		switch r.Priority {
		case dataplane.PriorityToPod:
			to = append(to, a)
		case dataplane.PriorityFromPod:
			from = append(from, a)
		}
	}
	for _, a := range from {
		if !slices.Contains(pods, a) {
			return fmt.Sprintf("a rule from %v belongs to nobody", a), nil
		}
	}
	for _, part := range []struct {
		name string
		list []netip.Addr
	}{{"links", links}, {"routes", routes}, {"rules", to}} {
		if why := differ(part.name, part.list, "addresses of pods", pods); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// instanceTag is on every ENI that a node's daemon has made, as on amazon-vpc-cni-k8s's.
const instanceTag = "node.k8s.amazonaws.com/instance_id"

// given are the addresses that EC2 has given the node for pods, and the ENIs that it has made and that are on no instance.
func (s *scene) given() (addresses []netip.Addr, stray []ec2.ENIID) {
	s.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		for _, e := range m.AllENIs() {
			switch {
			case e.Instance == s.node.Instance:
				addresses = append(addresses, e.Secondaries...)
			case e.Status == ec2.Available && slices.Contains(e.Tags, ec2.Tag{Key: instanceTag, Value: string(s.node.Instance)}):
				stray = append(stray, e.ID)
			}
		}
	})
	return addresses, stray
}

// leftover is a DEL that nobody has done yet, or network namespaces without a pod.
func (s *scene) leftover(pods int) (string, error) {
	dels, err := os.ReadDir(s.path("/run/aws-node/del"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(dels) > 0 {
		return fmt.Sprintf("%d DELs are not done yet, as %s", len(dels), dels[0].Name()), nil
	}
	namespaces, err := os.ReadDir(s.path("/run/netns"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(namespaces) != pods {
		return fmt.Sprintf("the runtime has %d network namespaces for %d pods", len(namespaces), pods), nil
	}
	return "", nil
}

// differ says how two lists of addresses are not the same set.
func differ(a string, as []netip.Addr, b string, bs []netip.Addr) string {
	for _, l := range [][]netip.Addr{as, bs} {
		slices.SortFunc(l, netip.Addr.Compare)
	}
	if slices.Equal(as, bs) {
		return ""
	}
	return fmt.Sprintf("%s are %v, %s are %v", a, as, b, bs)
}
