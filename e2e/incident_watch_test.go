package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/vpc"
)

// Times of the watch.
const (
	watchPeriod = 250 * time.Millisecond
	// patience is how long a live pod may be silent, and looks at how many of the watch's looks it may: on a busy machine the watch itself
	// comes late. Nothing that a sound daemon does interrupts a pod; the rest is this machine's load.
	patience = 8 * time.Second
	looks    = 4
	// glance is how long one look waits for answers.
	glance = time.Second
)

// vethPrefix is AWS_VPC_K8S_CNI_VETHPREFIX's default.
const vethPrefix = "eni"

// life is a container that must keep what it has.
type life struct {
	name    string
	address netip.Addr
}

// silence is that of a life that should answer.
type silence struct {
	since time.Time
	looks int
}

// watch looks at the node again and again, until stop, which says what broke. What breaks ends the context, and with it all waiting.
func (s *scene) watch(ctx context.Context) (watched context.Context, stop func() error) {
	watched, cancel := context.WithCancelCause(ctx)
	end, ended := make(chan struct{}), make(chan struct{})
	var broke error
	go func() {
		defer close(ended)
		silent := map[life]silence{}
		for {
			err := s.look(watched, silent)
			var v *violation
			if errors.As(err, &v) {
				broke = err
				cancel(err)
				return
			}
			select { // any other error: the API server or this machine has no time; the incident finds out
			case <-time.After(watchPeriod):
			case <-end:
				return
			case <-watched.Done():
				return
			}
		}
	}()
	return watched, func() error {
		close(end)
		<-ended
		cancel(nil)
		return broke
	}
}

// look says what is wrong right now. silent are those that did not answer at the last one.
func (s *scene) look(ctx context.Context, silent map[life]silence) error {
	live, err := s.live(ctx)
	if err != nil {
		return err
	}
	if err := s.served(ctx, live); err != nil {
		return err
	}
	if err := s.doubled(); err != nil {
		return err
	}
	var addrs []netip.Addr
	for _, l := range live {
		addrs = append(addrs, l.address)
	}
	began := time.Now()
	answers := s.Network().Ping(addrs, glance)
	if live, err = s.live(ctx); err != nil { // those that were about to end are not meant
		return err
	}
	for l := range silent {
		if i := slices.Index(addrs, l.address); i < 0 || answers[i] || !slices.Contains(live, l) {
			delete(silent, l)
		}
	}
	for _, l := range live {
		if i := slices.Index(addrs, l.address); i < 0 || answers[i] {
			continue
		}
		q, already := silent[l]
		if !already {
			q.since = began
		}
		q.looks++
		if silent[l] = q; q.looks > looks && time.Since(q.since) > patience {
			return broken(judge.I10, "%s has not answered at %v for %v", l.name, l.address, patience)
		}
	}
	return nil
}

// live are the incident's pods that are Ready and shall go on.
func (s *scene) live(ctx context.Context) ([]life, error) {
	pods, err := s.pods(ctx, s.name, "")
	if err != nil {
		return nil, err
	}
	var out []life
	for i := range pods {
		p := &pods[i]
		if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && ready(p) && p.DeletionTimestamp == nil {
			out = append(out, life{fmt.Sprintf("pod %s (%.8s)", p.Name, p.UID), a})
		}
	}
	return out, nil
}

// doubled says whether an address is in two namespaces. A look at the kernel goes from link to link and takes its time: a pod may have ended
// behind one that was seen, and another one begun with its address behind one that was not. So the next look has to find the same.
func (s *scene) doubled() error {
	o, err := s.observe()
	if err != nil {
		return err
	}
	first := doubles(&o)
	if len(first) == 0 {
		return nil
	}
	again, err := s.observe()
	if err != nil {
		return err
	}
	for a, where := range doubles(&again) {
		if first[a] == where {
			return broken(judge.I1, "%v is behind %s", a, where)
		}
	}
	return nil
}

// doubles are the addresses behind two links, and which.
func doubles(o *dataplane.Observation) map[netip.Addr]string {
	behind, twice := map[netip.Addr]string{}, map[netip.Addr]string{}
	for i := range o.Links {
		l := &o.Links[i]
		if !l.PeerLive || !strings.HasPrefix(l.Name, vethPrefix) {
			continue // an ENI's other end is the VPC
		}
		for _, a := range l.PeerAddresses {
			if other, there := behind[a]; there {
				twice[a] = fmt.Sprintf("%s (%s) and behind %s", l.Name, l.Alias, other)
			}
			behind[a] = fmt.Sprintf("%s (%s)", l.Name, l.Alias)
		}
	}
	return twice
}

// served says whether EC2 has taken an address from under a container, and the container is still there afterwards: on a busy machine there
// is time between two questions for a pod to end and its address to be given back.
func (s *scene) served(ctx context.Context, live []life) error {
	taken := map[life]bool{}
	s.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		for _, l := range live {
			id, on, _ := m.OwnerOf(l.address)
			if e, ok := m.ENI(id); !ok || on != s.node.Instance || e.Status == ec2.Detaching {
				taken[l] = true
			}
		}
	})
	if len(taken) == 0 {
		return nil
	}
	still, err := s.live(ctx)
	if err != nil {
		return err
	}
	for _, l := range still {
		if taken[l] {
			return broken(judge.I4, "%s has %v, which EC2 has taken from %s", l.name, l.address, s.node.Name)
		}
	}
	return nil
}

// observe is the node's kernel, and what can be seen of pods through it.
func (s *stage) observe() (o dataplane.Observation, err error) {
	err = vpc.Do(s.node.Netns(), func() error {
		k, err := linux.Open(linux.Options{})
		if err != nil {
			return err
		}
		defer k.Close()
		o, err = k.Observe()
		return err
	})
	return o, err
}
