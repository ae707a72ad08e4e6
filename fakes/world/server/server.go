package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	"github.com/enilab/enilab/fakes/imds"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/fakes/world"
)

// Options say what to run and where.
type Options struct {
	World *world.World
	// Where to listen, as ADDRESS:PORT; "": not at all. IMDS is that of the first instance; the next one has the next port, or with port 0
	// all have some free port.
	EC2, IMDS, Admin string
	// Hosts are names, besides localhost, under which the admin endpoint answers. A web page can give its own name the address of this machine
	// (DNS rebinding), and would read the world under it.
	Hosts []string
	// Inside listens inside the network namespace of a path; nil: it cannot be done.
	Inside func(path, network, addr string) (net.Listener, error)
	// Say is called, concurrently, with what happens outside of requests: a launched instance has its metadata now, or
	// cannot have it. Nil: it is dropped.
	Say func(text string)
	// Netns is the network namespace in which the first instance's metadata is on 169.254.169.254 too; "": none.
	Netns string
}

// metadataAddr is where the real service listens.
const metadataAddr = "169.254.169.254:80"

// Server is a world that runs.
type Server struct {
	world    *world.World
	clock    *clock
	epoch    time.Time // when the world began
	signer   *imdsserver.Signer
	clouds   []*cloud
	accounts map[string]*world.Account // by access key
	fallback *world.Account            // whose the other keys are
	inside   func(path, network, addr string) (net.Listener, error)

	say   func(string)
	homes sync.Map // *cloud by ec2.InstanceID

	ec2URL, adminURL string

	mu       sync.Mutex
	closed   bool
	servers  []*http.Server
	metadata []metadata
	next     netip.AddrPort // of the next instance's metadata; invalid: there is none
	working  sync.WaitGroup
}

// metadata is one instance's endpoint.
type metadata struct {
	id      ec2.InstanceID
	servers []*http.Server
	url     string
	netns   string
}

// Start makes the world and listens. The error is a world.Errors, or says on which address it cannot listen.
func Start(o Options) (*Server, error) {
	clouds, settled, err := o.World.Make()
	if err != nil {
		return nil, err
	}
	s := &Server{world: o.World, clock: newClock(settled, o.World.Speed), epoch: time.Now().Add(-settled), signer: imdsserver.NewSigner(),
		accounts: map[string]*world.Account{}, inside: o.Inside, say: o.Say}
	for i := range o.World.Accounts {
		a := &o.World.Accounts[i]
		for _, k := range a.Keys {
			s.accounts[k.Access] = a
		}
		if a.Default {
			s.fallback = a
		}
	}
	for i := range clouds {
		c := &cloud{Cloud: clouds[i], s: s, clock: s.clock, hang: o.World.Hang, names: map[ec2.InstanceID]string{},
			extras: map[ec2.InstanceID]*imds.Extras{}, stirred: make(chan struct{}, 1)}
		for _, n := range c.Nodes {
			c.names[n.ID] = n.Name
			c.born(n.ID)
			c.extras[n.ID] = &imds.Extras{Image: n.Image, UserData: n.UserData, KeyName: n.Key.Name, Key: n.Key.Public, Spot: n.Spot, Lifecycle: n.Lifecycle}
		}
		s.clouds = append(s.clouds, c)
	}
	if err := s.open(&o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, c := range s.clouds {
		s.working.Go(c.run)
	}
	return s, nil
}

// open listens everywhere.
func (s *Server) open(o *Options) (err error) {
	if o.EC2 != "" {
		if s.ec2URL, err = s.listen("EC2", o.EC2, ec2server.Server(s.front())); err != nil {
			return err
		}
	}
	if o.Admin != "" {
		if s.adminURL, err = s.listen("the admin endpoint", o.Admin, adminServer(s, o.Hosts)); err != nil {
			return err
		}
	}
	if o.IMDS == "" {
		return nil
	}
	if s.next, err = netip.ParseAddrPort(o.IMDS); err != nil {
		return fmt.Errorf("listen for metadata on %q: expected an address and a port such as 127.0.0.1:1338", o.IMDS)
	}
	netns := o.Netns
	for _, c := range s.clouds {
		for _, n := range c.Nodes {
			if err := s.openMetadata(c, n.ID, n.Instance, netns); err != nil {
				return err
			}
			netns = ""
		}
	}
	return nil
}

// listen serves at an address and says at which URL.
func (s *Server) listen(what, addr string, h *http.Server) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen for %s on %s: %w", what, addr, err)
	}
	s.serve(h, l)
	return "http://" + l.Addr().String(), nil
}

func (s *Server) serve(h *http.Server, l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return
	}
	s.servers = append(s.servers, h)
	s.working.Go(func() { _ = h.Serve(l) })
}

// happened opens and closes the metadata of instances that come and go. It is called with the cloud's lock held, which listening must not
// wait for.
func (s *Server) happened(c *cloud, e *ec2.Event) {
	id := e.Instance
	s.aside(func() {
		if e.Kind == ec2.InstanceTerminated {
			s.closeMetadata(id)
		} else if s.next.IsValid() {
			s.launched(c, id)
		}
	})
}

// launched opens the metadata of an instance that the file does not know.
func (s *Server) launched(c *cloud, id ec2.InstanceID) {
	text := ""
	if err := s.openMetadata(c, id, &world.Instance{Name: string(id), Role: c.Region.Launched.Role, Metadata: c.Region.Launched.Metadata}, ""); err != nil {
		text = err.Error()
	} else {
		for _, m := range s.Endpoints().Metadata {
			if m.Instance == id {
				text = "metadata  " + m.URL + "  " + string(id)
			}
		}
	}
	if s.say != nil {
		s.say(text)
	}
}

// aside runs f in a goroutine, unless the world ends.
func (s *Server) aside(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.working.Go(f)
	}
}

// closeMetadata ends the service of an instance that is gone.
func (s *Server) closeMetadata(id ec2.InstanceID) {
	s.mu.Lock()
	var gone []*http.Server
	s.metadata = slices.DeleteFunc(s.metadata, func(m metadata) bool {
		if m.id == id {
			gone = append(gone, m.servers...)
		}
		return m.id == id
	})
	s.servers = slices.DeleteFunc(s.servers, func(h *http.Server) bool { return slices.Contains(gone, h) })
	s.mu.Unlock()
	for _, h := range gone {
		_ = h.Close()
	}
}

// openMetadata listens for an instance's metadata.
func (s *Server) openMetadata(c *cloud, id ec2.InstanceID, in *world.Instance, netns string) error {
	addr := in.Metadata.Listen
	if addr == "" {
		var err error
		if addr, err = s.nextAddr(); err != nil {
			return fmt.Errorf("listen for the metadata of %s: %w", in.Name, err)
		}
	}
	h := s.service(c, id, in, false)
	url, err := s.listen("the metadata of "+in.Name, addr, h)
	if err != nil {
		return err
	}
	m := metadata{id, []*http.Server{h}, url, cmp.Or(netns, in.Metadata.Netns)}
	if m.netns != "" {
		inside := s.service(c, id, in, true)
		m.servers = append(m.servers, inside)
		if err := s.enter(inside, in.Name, m.netns); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metadata = append(s.metadata, m)
	return nil
}

// nextAddr is where the next instance's metadata listens.
func (s *Server) nextAddr() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.next.String()
	switch p := s.next.Port(); p {
	case 0: // any that is free
	case 65535:
		return "", errors.New("there is no port after 65535: begin with a smaller one")
	default:
		s.next = netip.AddrPortFrom(s.next.Addr(), p+1)
	}
	return addr, nil
}

// service is an instance's metadata service, which may listen inside of its namespace.
func (s *Server) service(c *cloud, id ec2.InstanceID, in *world.Instance, inside bool) *http.Server {
	m := &in.Metadata
	o := imdsserver.Options{V1: m.V1, Disabled: m.Disabled, HopLimit: m.HopLimit, Tags: m.Tags, Throttle: m.Throttle, Inside: inside}
	return imdsserver.Server(imdsserver.Handler(imdsserver.Config{View: c.metadata(id), Now: s.clock.now, Wall: s.wall, Role: in.Role, Extras: c.extrasOf(id), Signer: s.signer, Options: o}))
}

// wall is the time of day in the world.
func (s *Server) wall() time.Time { return s.epoch.Add(s.clock.now()) }

// enter lets a metadata service listen in a network namespace.
func (s *Server) enter(h *http.Server, name, path string) error {
	if s.inside == nil {
		return fmt.Errorf("listen for the metadata of %s inside %s: network namespaces are Linux's", name, path)
	}
	l, err := s.inside(path, "tcp", metadataAddr)
	if err != nil {
		return fmt.Errorf("listen for the metadata of %s on %s inside %s: %w", name, metadataAddr, path, err)
	}
	s.serve(h, l)
	return nil
}

// lastWords is how long callers have to hear their answers when the world ends.
const lastWords = time.Second

// Close ends the world: callers that wait for nothing are sent away, the others get their answers.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.clock.ended)
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	var ending sync.WaitGroup
	for _, h := range s.servers {
		ending.Go(func() {
			if h.Shutdown(ctx) != nil {
				_ = h.Close()
			}
		})
	}
	ending.Wait()
	s.working.Wait()
	return nil
}
