package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Endpoints are where a world listens, and as whom to come.
type Endpoints struct {
	EC2      string     `json:"ec2,omitempty"`
	Admin    string     `json:"admin,omitempty"`
	Accounts []Account  `json:"accounts"`
	Metadata []Metadata `json:"metadata"`
}

// Account is one of the world's.
type Account struct {
	ID      string   `json:"id"`
	Access  string   `json:"accessKey"`
	Secret  string   `json:"secretKey"`
	Regions []string `json:"regions"`
	Default bool     `json:"default,omitempty"`
}

// Metadata is an instance's endpoint.
type Metadata struct {
	Name     string         `json:"name"`
	Instance ec2.InstanceID `json:"instance"`
	URL      string         `json:"url"`
	Netns    string         `json:"netns,omitempty"` // where it is on metadataAddr too
}

// Endpoints says where the world listens now.
func (s *Server) Endpoints() Endpoints {
	e := Endpoints{EC2: s.ec2URL, Admin: s.adminURL}
	for i := range s.world.Accounts {
		a := &s.world.Accounts[i]
		v := Account{ID: a.ID, Access: a.Keys[0].Access, Secret: a.Keys[0].Secret, Default: a.Default}
		for k := range a.Regions {
			v.Regions = append(v.Regions, a.Regions[k].Name)
		}
		e.Accounts = append(e.Accounts, v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.metadata {
		e.Metadata = append(e.Metadata, Metadata{s.nameOf(m.id), m.id, m.url, m.netns})
	}
	return e
}

// nameOf is what the file calls an instance, else its identifier.
func (s *Server) nameOf(id ec2.InstanceID) string {
	for _, c := range s.clouds {
		if name := c.names[id]; name != "" {
			return name
		}
	}
	return string(id)
}

// Environment is what lets the AWS CLI and the SDKs come as the default account, or else as the first one.
func (e *Endpoints) Environment() []string {
	var out []string
	set := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	set("AWS_ENDPOINT_URL_EC2", e.EC2)
	if len(e.Metadata) > 0 {
		set("AWS_EC2_METADATA_SERVICE_ENDPOINT", e.Metadata[0].URL)
	}
	if e.EC2 == "" {
		return out
	}
	a := e.Accounts[0]
	for _, o := range e.Accounts {
		if o.Default {
			a = o
		}
	}
	set("AWS_ACCESS_KEY_ID", a.Access)
	set("AWS_SECRET_ACCESS_KEY", a.Secret)
	set("AWS_REGION", a.Regions[0])
	set("AWS_DEFAULT_REGION", a.Regions[0])
	return out
}

// mostShown is how many instances a text names one by one.
const mostShown = 20

// String is what a person who has started it wants to see.
func (e *Endpoints) String() string {
	var b strings.Builder
	if e.EC2 != "" {
		var whose []string
		for _, a := range e.Accounts {
			whose = append(whose, a.ID+" in "+strings.Join(a.Regions, ", "))
		}
		fmt.Fprintf(&b, "EC2       %s  account %s\n", e.EC2, strings.Join(whose, "; account "))
	}
	for i, m := range e.Metadata {
		if i == mostShown {
			fmt.Fprintf(&b, "          and %d more, up to %s\n", len(e.Metadata)-i, e.Metadata[len(e.Metadata)-1].URL)
			break
		}
		fmt.Fprintf(&b, "metadata  %s  %s (%s)", m.URL, m.Name, m.Instance)
		if m.Netns != "" {
			fmt.Fprintf(&b, ", and %s inside %s", metadataAddr, m.Netns)
		}
		b.WriteString("\n")
	}
	if e.Admin != "" {
		fmt.Fprintf(&b, "admin     %s  curl it for what it can do\n", e.Admin)
	}
	b.WriteString("\n")
	for _, v := range e.Environment() {
		b.WriteString("export " + v + "\n")
	}
	return b.String()
}

// Skip makes time pass in the world at once.
func (s *Server) Skip(d time.Duration) { s.clock.skip(d) }

// Now is the time since the world began.
func (s *Server) Now() time.Duration { return s.clock.now() }

// Cloud calls f with the model of an account's region, alone, at the present instant. False: there is none.
func (s *Server) Cloud(account, region string, f func(now time.Duration, m *ec2.Cloud)) bool {
	for _, c := range s.clouds {
		if (account == "" || c.Account.ID == account) && (region == "" || c.Region.Name == region) {
			c.with(f)
			return true
		}
	}
	return false
}
