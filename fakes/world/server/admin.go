package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Limits of the admin endpoint's connections.
const (
	adminTimeout = 10 * time.Second
	maxAdminBody = 1 << 20
)

func adminServer(s *Server, hosts []string) *http.Server {
	return &http.Server{Handler: guard(s.admin(), hosts), ReadHeaderTimeout: adminTimeout, ReadTimeout: adminTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

// adminManual is what GET / answers.
const adminManual = `GET    /state                      accounts, regions, networks, instances, interfaces: as they are, without lag (JSON)
GET    /ledger                     calls by action, caller and outcome (JSON)
GET    /faults                     faults in force, one a line
POST   /faults                     adds those of the body, one a line, such as:
                                   Fail action=AttachNetworkInterface node=node-1 code=InternalError times=3
POST   /faults?draw=SEED           adds one that is drawn
DELETE /faults                     ends them all
GET    /faults/kinds               what there is to write
POST   /knobs                      latency and lag of the body, written as in a world file
POST   /clock?skip=10m             time that nobody waits for passes
POST   /instances/ID/reboot        by identifier or name
POST   /instances/ID/terminate
POST   /instances/ID/notice?...    in its metadata: spot=terminate&in=2m, rebalance, lifecycle=Terminated; nothing takes them away
POST   /enis/ID/detach             as a stranger would
POST   /enis/ID/delete             as a stranger would, who waited
POST   /addresses/ADDR/unassign    as a stranger would
POST   /subnets/ID/drain?leave=N   strangers take all addresses but N, or give them back
POST   /subnets/ID/fragment?leave=N  strangers take one address of every free /28 but N: no prefix fits

?account=ID and ?region=NAME choose one of several; without them all are meant.
`

// doer is something that the endpoint does; what it returns is written as JSON.
type doer func(r *http.Request) (any, error)

// problem is an error with a status of HTTP.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func wrong(format string, args ...any) error {
	return &problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) error {
	return &problem{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func (s *Server) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(adminManual)) })
	for pattern, do := range map[string]doer{
		"GET /state":                      s.state,
		"GET /ledger":                     s.ledger,
		"POST /faults":                    s.addFaults,
		"DELETE /faults":                  s.clearFaults,
		"POST /knobs":                     s.setKnobs,
		"POST /instances/{id}/notice":     s.notice,
		"POST /enis/{id}/delete":          s.stranger((*ec2.Cloud).ThirdPartyDelete),
		"POST /clock":                     s.skipped,
		"POST /instances/{id}/reboot":     s.instance((*ec2.Cloud).Reboot),
		"POST /instances/{id}/terminate":  s.instance((*ec2.Cloud).Terminate),
		"POST /enis/{id}/detach":          s.stranger((*ec2.Cloud).ThirdPartyDetach),
		"POST /addresses/{addr}/unassign": s.strangerUnassign,
		"POST /subnets/{id}/drain":        s.crowd(func(m *ec2.Cloud, now time.Duration, id ec2.SubnetID, leave int) { m.DrainSubnet(now, id, leave) }),
		"POST /subnets/{id}/fragment":     s.crowd((*ec2.Cloud).FragmentSubnet),
	} {
		mux.HandleFunc(pattern, answer(do))
	}
	mux.HandleFunc("GET /faults", text(s.faults))
	mux.HandleFunc("GET /faults/kinds", text(faultKinds))
	return mux
}

// guard refuses what a browser sends for a site that is not this one: there is no password to stop it. A browser that reads sends no Origin, but
// always the name of the site as Host.
func guard(h http.Handler, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			http.Error(w, "requests of web pages are refused: use curl", http.StatusForbidden)
			return
		}
		if name := hostName(r.Host); !mine(name, hosts) {
			http.Error(w, fmt.Sprintf("the admin endpoint is not %.80q: use its address or localhost, or name it with enilab serve --host", name),
				http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxAdminBody)
		h.ServeHTTP(w, r)
	})
}

// hostName is a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// mine says whether a host is this endpoint's, so that no web page reaches it by a name of its own (DNS rebinding).
func mine(name string, hosts []string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	same := func(host string) bool { return strings.EqualFold(name, host) }
	return same("localhost") || slices.ContainsFunc(hosts, same)
}

func answer(do doer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r)
		if err != nil {
			sorry(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(v) // a caller that has gone does not want it
	}
}

// text is answer for what is for people.
func text(do func(*http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := do(r)
		if err != nil {
			sorry(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, s)
	}
}

func sorry(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if p, ok := errors.AsType[*problem](err); ok {
		status = p.status
	}
	http.Error(w, err.Error(), status)
}

// chosen are the clouds that a request means: all, without account and region.
func (s *Server) chosen(r *http.Request) (out []*cloud, err error) {
	account, region := r.URL.Query().Get("account"), r.URL.Query().Get("region")
	for _, c := range s.clouds {
		if (account == "" || c.Account.ID == account) && (region == "" || c.Region.Name == region) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, missing("there is no account %q with a region %q: GET /state lists what there is", account, region)
	}
	return out, nil
}

// first calls f with the chosen clouds' models until it says that it has found what it looked for.
func (s *Server) first(r *http.Request, what string, f func(c *cloud, now time.Duration, m *ec2.Cloud) bool) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		found := false
		c.with(func(now time.Duration, m *ec2.Cloud) { found = f(c, now, m) })
		if found {
			return done, nil
		}
	}
	return nil, missing("there is no %s: GET /state lists what there is", what)
}

var done = map[string]bool{"done": true}

func (s *Server) skipped(r *http.Request) (any, error) {
	d, err := time.ParseDuration(r.URL.Query().Get("skip"))
	if err != nil || d <= 0 || d > mostSkipped {
		return nil, wrong("skip: expected a duration up to %v such as ?skip=10m, found %q", mostSkipped, r.URL.Query().Get("skip"))
	}
	s.Skip(d)
	return map[string]string{"now": s.Now().String()}, nil
}

// mostSkipped bounds one skip, far below what a time.Duration holds.
const mostSkipped = 10000 * time.Hour

func (s *Server) instance(do func(*ec2.Cloud, time.Duration, ec2.InstanceID)) doer {
	return func(r *http.Request) (any, error) {
		name := r.PathValue("id")
		return s.first(r, "instance "+name, func(c *cloud, now time.Duration, m *ec2.Cloud) bool {
			id, ok := c.Instance(name)
			if ok {
				do(m, now, id)
			}
			return ok
		})
	}
}

// stranger is what a third party does to an interface.
func (s *Server) stranger(do func(*ec2.Cloud, time.Duration, ec2.ENIID) bool) doer {
	return func(r *http.Request) (any, error) {
		id := ec2.ENIID(r.PathValue("id"))
		return s.first(r, "interface "+string(id), func(_ *cloud, now time.Duration, m *ec2.Cloud) bool {
			_, ok := m.ENI(id)
			do(m, now, id)
			return ok
		})
	}
}

func (s *Server) strangerUnassign(r *http.Request) (any, error) {
	a, err := netip.ParseAddr(r.PathValue("addr"))
	if err != nil {
		return nil, wrong("expected an address, found %q", r.PathValue("addr"))
	}
	return s.first(r, "interface with "+a.String(), func(_ *cloud, now time.Duration, m *ec2.Cloud) bool {
		_, _, ok := m.OwnerOf(a)
		m.ThirdPartyUnassign(now, a)
		return ok
	})
}

// crowd is what third parties do to a subnet.
func (s *Server) crowd(do func(m *ec2.Cloud, now time.Duration, id ec2.SubnetID, leave int)) doer {
	return func(r *http.Request) (any, error) {
		leave, err := strconv.Atoi(r.URL.Query().Get("leave"))
		if err != nil || leave < 0 {
			return nil, wrong("leave: expected how many stay free, as ?leave=0, found %q", r.URL.Query().Get("leave"))
		}
		name := r.PathValue("id")
		return s.first(r, "subnet "+name, func(c *cloud, now time.Duration, m *ec2.Cloud) bool {
			id := c.Region.SubnetID(name)
			ok := m.FreeAddresses(id) >= 0
			do(m, now, id, leave)
			return ok
		})
	}
}
