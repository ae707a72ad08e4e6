package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/fakes/world"
)

// cloud is an account's region that runs. The lock guards the model.
type cloud struct {
	world.Cloud
	s     *Server
	clock *clock
	hang  time.Duration // for how long of real time a caller waits for nothing

	mu      sync.Mutex
	names   map[ec2.InstanceID]string       // those of the file
	ids     []ec2.InstanceID                // all instances, oldest first
	extras  map[ec2.InstanceID]*imds.Extras // what metadata says besides; nil: nothing
	stirred chan struct{}                   // something may happen by itself, earlier than was thought
}

// with calls f with the model, alone, at the present instant.
func (c *cloud) with(f func(now time.Duration, m *ec2.Cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.now()
	c.Advance(now)
	f(now, c.Cloud.Cloud)
	c.follow()
}

// follow takes what has happened; the lock is held.
func (c *cloud) follow() {
	for _, e := range c.Events() {
		if e.Kind == ec2.InstanceRunning || e.Kind == ec2.InstanceTerminated {
			c.s.happened(c, &e)
		}
	}
}

// born is a new instance; a repeated RunInstances tells of old ones. The lock is held.
func (c *cloud) born(id ec2.InstanceID) {
	if _, known := c.s.homes.LoadOrStore(id, c); !known {
		c.ids = append(c.ids, id)
	}
}

// extrasOf is what an instance's metadata says besides the model.
func (c *cloud) extrasOf(id ec2.InstanceID) func() imds.Extras {
	return func() (x imds.Extras) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := c.extras[id]; e != nil {
			x = *e
		}
		return x
	}
}

// name is what the file calls an instance, else its identifier.
func (c *cloud) name(id ec2.InstanceID) string {
	if name := c.names[id]; name != "" {
		return name
	}
	return string(id)
}

// serve makes a request travel there and back.
func (c *cloud) serve(ctx context.Context, r *ec2.Request) (p ec2.Response, err error) {
	var back time.Duration
	c.mu.Lock()
	there, back := c.Travel(r)
	if there <= 0 {
		p = c.arrive(r)
	}
	c.mu.Unlock()
	if there > 0 {
		// A caller that hangs up does not undo what was sent.
		if err := c.clock.wait(context.WithoutCancel(ctx), there); err != nil {
			return p, err
		}
		c.mu.Lock()
		p = c.arrive(r)
		c.mu.Unlock()
	}
	if p.Lost {
		if err := c.clock.sleep(ctx, c.hang, nil); err != nil {
			return p, err
		}
		return p, errors.New("the answer is lost")
	}
	return p, c.clock.wait(ctx, back)
}

// arrive has the model serve a request; the lock is held.
func (c *cloud) arrive(r *ec2.Request) ec2.Response {
	p := c.Serve(c.clock.now(), r)
	if r.Action == ec2.RunInstances {
		for i := range p.Instances {
			c.born(p.Instances[i].ID)
		}
	}
	c.follow()
	if r.Action != ec2.DescribeNetworkInterfaces && r.Action != ec2.DescribeInstances {
		c.stir()
	}
	return p
}

// metadata is what an instance's metadata says now.
func (c *cloud) metadata(id ec2.InstanceID) func(context.Context) (ec2.IMDS, bool) {
	return func(ctx context.Context) (view ec2.IMDS, ok bool) {
		c.with(func(now time.Duration, m *ec2.Cloud) { view, ok = m.IMDS(now, id) })
		if !ok {
			_ = c.clock.sleep(ctx, c.hang, nil)
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		return view, ok
	}
}

// front is the EC2 endpoint of all clouds.
type front struct {
	s *Server
}

// front is what speaks EC2's protocol.
func (s *Server) front() http.Handler {
	o := ec2server.Options{Epoch: s.epoch, Account: s.account}
	if s.world.Verify {
		o.Keys, o.Clock = s.secret, time.Now // who signs looks at the real clock
	}
	return ec2server.New(o, front{s})
}

// account is whose the calls of a signer are.
func (s *Server) account(signer ec2server.Signer) string {
	if c, _, _ := s.whose(signer); c != nil {
		return c.Account.ID
	}
	return ec2.Account
}

// secret is that of an access key: of an account, or of an instance's role.
func (s *Server) secret(access string) (string, bool) {
	if id, ok := imds.InstanceOf(access); ok {
		return imds.SecretKey(access), s.home(id) != nil
	}
	a := s.accounts[access]
	if a == nil {
		return "", false
	}
	for _, k := range a.Keys {
		if k.Access == access {
			return k.Secret, true
		}
	}
	return "", false
}

// Do finds the cloud that a request is for, by who signed it.
func (f front) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	signer, _ := ec2server.SignerOf(ctx)
	c, caller, refusal := f.s.whose(signer)
	if c == nil {
		return refusal, nil
	}
	r.Caller = caller
	return c.serve(ctx, r)
}

// whose is the cloud that a signer means, and the instance whose key it is; nil and what to answer: none.
func (s *Server) whose(signer ec2server.Signer) (*cloud, ec2.InstanceID, ec2.Response) {
	if id, ok := imds.InstanceOf(signer.AccessKey); ok {
		home := s.home(id)
		if home == nil {
			return nil, "", refused("AuthFailure", http.StatusUnauthorized, "AWS was not able to validate the provided access credentials")
		}
		c, p := s.regionOf(home.Account, signer.Region)
		if c != home {
			id = "" // its calls to another region are a third party's there
		}
		return c, id, p
	}
	a := s.accounts[signer.AccessKey]
	if a == nil && !s.world.Verify {
		a = s.fallback
	}
	if a == nil {
		return nil, "", refused("AuthFailure", http.StatusUnauthorized, "AWS was not able to validate the provided access credentials")
	}
	c, p := s.regionOf(a, signer.Region)
	return c, "", p
}

// regionOf is an account's cloud in a region.
func (s *Server) regionOf(a *world.Account, region string) (*cloud, ec2.Response) {
	for _, c := range s.clouds {
		if c.Account == a && c.Region.Name == region {
			return c, ec2.Response{}
		}
	}
	return nil, refused("SignatureDoesNotMatch", http.StatusForbidden, "Credential should be scoped to a valid region, not '"+region+"'.")
}

// home is the cloud of an instance.
func (s *Server) home(id ec2.InstanceID) *cloud {
	if c, ok := s.homes.Load(id); ok {
		return c.(*cloud)
	}
	return nil
}

func refused(code string, status int, message string) ec2.Response {
	return ec2.Response{Code: code, HTTP: status, Message: message}
}
