package server

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/fakes/world"
)

// faults are those in force, with a # before whose they are when there are several clouds.
func (s *Server) faults(r *http.Request) (string, error) {
	list, err := s.chosen(r)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range list {
		c.with(func(_ time.Duration, m *ec2.Cloud) {
			if len(s.clouds) > 1 && len(m.Faults()) > 0 {
				b.WriteString("# " + c.Account.ID + " in " + c.Region.Name + "\n")
			}
			for _, f := range m.Faults() {
				b.WriteString(f.String() + "\n")
			}
		})
	}
	return b.String(), nil
}

func faultKinds(*http.Request) (string, error) {
	var b strings.Builder
	for _, k := range ec2.FaultKinds() {
		b.WriteString(k.Usage() + "\n")
	}
	return b.String(), nil
}

// addFaults adds all of the body's or, if one cannot be read, none. One that names a node goes to that node's cloud.
func (s *Server) addFaults(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	if seed := r.URL.Query().Get("draw"); seed != "" {
		return drawFault(list, seed)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, wrong("the faults cannot be read: %v", err)
	}
	type fault struct {
		c *cloud
		ec2.Fault
	}
	var all []fault
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		read := false
		for _, c := range list {
			c.with(func(now time.Duration, _ *ec2.Cloud) {
				f, e := c.ParseFault(now, line)
				if e != nil {
					err = e
					return
				}
				all, read = append(all, fault{c, f}), true
			})
		}
		if !read {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, wrong("there is no fault in the body: write one a line, such as: Fail action=AttachNetworkInterface times=3")
	}
	for i := range all {
		f := &all[i]
		f.c.with(func(_ time.Duration, m *ec2.Cloud) { m.Fault(f.Fault) })
	}
	return map[string]int{"added": len(all)}, nil
}

// drawFault adds the fault of a seed to the first cloud.
func drawFault(list []*cloud, text string) (any, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, wrong("draw: expected a whole number, found %q", text)
	}
	said := ""
	list[0].with(func(now time.Duration, m *ec2.Cloud) {
		f := ec2.DrawFault(seed, now, list[0].ids)
		m.Fault(f)
		said = f.String()
	})
	return map[string]string{"fault": said}, nil
}

func (s *Server) clearFaults(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		c.with(func(now time.Duration, m *ec2.Cloud) { m.ClearFaults(now) })
		c.stir()
	}
	return done, nil
}

// setKnobs changes how long things take and how far views trail.
func (s *Server) setKnobs(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, wrong("the knobs cannot be read: %v", err)
	}
	for _, c := range list {
		c.with(func(_ time.Duration, m *ec2.Cloud) {
			latency, lag := m.Latency(), m.Lag()
			if err = world.ReadKnobs("body", body, &latency, &lag); err == nil {
				m.SetLatency(latency)
				m.SetLag(lag)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return done, nil
}

// notice puts something into an instance's metadata.
func (s *Server) notice(r *http.Request) (any, error) {
	q := r.URL.Query()
	var in time.Duration
	if text := q.Get("in"); text != "" {
		var err error
		if in, err = time.ParseDuration(text); err != nil || in < 0 || in > mostSkipped {
			return nil, wrong("in: expected a duration such as 2m, found %q", text)
		}
	}
	spot := q.Get("spot")
	if spot != "" && spot != "terminate" && spot != "stop" && spot != "hibernate" {
		return nil, wrong("spot: expected terminate, stop or hibernate, found %q", spot)
	}
	for key := range q {
		switch key {
		case "in", "spot", "rebalance", "lifecycle", "account", "region":
		default:
			return nil, wrong("there is no notice %q: there are spot, rebalance and lifecycle", key)
		}
	}
	name := r.PathValue("id")
	return s.first(r, "instance "+name, func(c *cloud, now time.Duration, _ *ec2.Cloud) bool {
		id, ok := c.Instance(name)
		if !ok {
			return false
		}
		at := s.epoch.Add(now + in)
		x := imds.Extras{}
		if was := c.extras[id]; was != nil {
			x = *was
		}
		x.Interruption, x.Rebalance = nil, time.Time{}
		if spot != "" {
			x.Interruption = &imds.Interruption{Action: spot, At: at}
		}
		if q.Has("rebalance") {
			x.Rebalance = at
		}
		if q.Has("lifecycle") {
			x.Lifecycle = q.Get("lifecycle")
		}
		c.extras[id] = &x
		return true
	})
}
