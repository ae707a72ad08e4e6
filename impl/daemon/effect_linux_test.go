package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// env are environment variables; "" is unset.
type env map[string]string

// effect is the test of one of upstream's settings.
type effect struct {
	t     *testing.T
	name  string
	names []string // of all of them
}

// clear takes away what would decide for the test, and gives the daemon a node in folders of the test.
func (e *effect) clear() {
	e.t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(e.names, name) ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY") || strings.HasPrefix(name, "AWS_") ||
			strings.HasPrefix(name, "ENILAB_") || strings.HasPrefix(name, "KUBERNETES_") {
			e.t.Setenv(name, "")
		}
	}
	dir := folders(e.t)
	run := filepath.Join(dir, "run")
	conf := filepath.Join(dir, "net.d")
	must.Do(e.t, os.Mkdir(conf, 0o755))
	e.environ(env{"ENILAB_RUN_DIR": run, "ENILAB_SOCKET": filepath.Join(run, "ipamd.sock"),
		"ENILAB_LIB_DIR": filepath.Join(dir, "lib"), "ENILAB_RUNTIME_SOCKET": "none", "ENILAB_RIVAL": "none",
		"AWS_VPC_K8S_CNI_BACKING_STORE": filepath.Join(run, "ipam.json"),
		"AWS_VPC_K8S_CNI_LOG_FILE":      filepath.Join(dir, "ipamd.log"), "HOST_CNI_CONFDIR_PATH": conf, "HOST_CNI_BIN_PATH": "none",
		"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"})
}

func (e *effect) environ(set env) {
	for name, value := range set {
		e.t.Setenv(name, value)
	}
}

// read is what ipamd makes of an environment: see serve.
func (e *effect) read(set env) (*settings.Settings, Config) {
	e.t.Helper()
	e.clear()
	e.environ(set)
	return e.settings()
}

func (e *effect) settings() (*settings.Settings, Config) {
	s, problems := settings.Read(os.LookupEnv)
	problems = append(problems, settings.Unknown(os.Environ())...)
	return s, configure(s, problems, slog.New(slog.DiscardHandler))
}

// asks says that the test asks the daemon on its socket, which answers root alone.
func (e *effect) asks() {
	e.t.Helper()
	if os.Geteuid() != 0 {
		e.t.Skip("needs root: the daemon answers nobody else on its socket")
	}
}

// serves is a daemon that has taken up its work.
func (e *effect) serves(set env) *rig {
	e.t.Helper()
	e.asks()
	_, c := e.read(set)
	if len(c.Problems) > 0 {
		e.t.Fatalf("%v is refused: %q", set, c.Problems)
	}
	r := rigOf(e.t, 4, c).start().serves()
	if c.ConfDir != "" {
		r.eventually("the conflist is written", func() bool { return exists(filepath.Join(c.ConfDir, "10-aws.conflist")) })
	}
	return r
}

// conflist is the file without white space.
func (r *rig) conflist() string {
	r.t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(r.c.ConfDir, "10-aws.conflist")))(r.t)
	return strings.Join(strings.Fields(string(data)), "")
}

// observed is the kernel once the daemon has done its own part there.
func (r *rig) observed() (o dataplane.Observation) {
	r.t.Helper()
	r.eventually("the kernel is the node's", func() bool {
		o, _ = r.kernel.Observe()
		return o.NAT.Present
	})
	return o
}

// without: the setting changes nothing, and the manual has words in what it says of it.
func (e *effect) without(value, words string) {
	e.t.Helper()
	said, plain := e.read(nil)
	set, c := e.read(env{e.name: value})
	if len(c.Problems) > 0 || !slices.Equal(c.Unread, plain.Unread) { // others may be set that nobody reads
		e.t.Errorf("it is refused: %q %q", c.Problems, c.Unread)
	}
	if fmt.Sprint(said.IPAM) != fmt.Sprint(set.IPAM) {
		e.t.Error("it changes what the core is given")
	}
	manual := must.Get(os.ReadFile("../../docs/ipamd.md"))(e.t)
	if !slices.ContainsFunc(strings.Split(string(manual), "\n"), func(line string) bool {
		return strings.Contains(line, "`"+e.name+"`") && strings.Contains(line, words)
	}) {
		e.t.Errorf("docs/ipamd.md has no line with `%s` and %q", e.name, words)
	}
}

// open is a world in virtual time whose daemons have the settings that ipamd makes of an environment, but for what change
// makes of them.
func (e *effect) open(set env, change func(*ipam.Settings), text string) (*virtual.World, *sim.Run) {
	e.t.Helper()
	_, c := e.read(set)
	file := must.Get(scn.Parse(e.name, []byte("# "+e.name+"\n"+text+"\nfinally converges within 10m\n")))(e.t)
	cluster := must.Get(sim.Check(file))(e.t)
	cluster.Settings, cluster.Name = c.Settings, c.Cluster
	if change != nil {
		change(&cluster.Settings)
	}
	w := must.Get(virtual.Open(cluster, 1, nil))(e.t)
	run := must.Get(sim.NewRun(file, w, "sim"))(e.t)
	return w, run
}

// play says which of a scenario's expectations do not hold; "" is none. An action that misses ends the test: such a
// scenario shows nothing.
func (e *effect) play(set env, change func(*ipam.Settings), text string) (wrong string) {
	e.t.Helper()
	w, run := e.open(set, change, text)
	defer w.Close()
	v := run.Finish(nil)
	if v.Judged == 0 || len(v.Unplayed) > 0 {
		e.t.Fatalf("%d expectations were judged, not played: %+v", v.Judged, v.Unplayed)
	}
	for _, f := range v.Failures {
		wrong += f.Text + "; "
	}
	return wrong
}

// veths are the veths that are made in a scenario.
func (e *effect) veths(set env, text string) (ops []dataplane.Op) {
	e.t.Helper()
	w, run := e.open(set, nil, text)
	defer w.Close()
	w.Record(1, func(*ipam.Node) {}, func(_ time.Duration, _ ipam.Input, effs []ipam.Effect) {
		for _, f := range effs {
			if a, ok := f.(*ipam.Apply); ok {
				for _, o := range a.Plan.Ops {
					if o.Kind == dataplane.CreateVeth {
						ops = append(ops, o)
					}
				}
			}
		}
	})
	if v := run.Finish(nil); len(v.Failures) > 0 {
		e.t.Fatalf("%+v", v.Failures)
	}
	return ops
}

// logged is what a file has after a line of the lowest level, msg=low, and one of the highest, msg=high, were logged; ""
// where there is none.
func (e *effect) logged(set env, path string) string {
	e.t.Helper()
	s, _ := e.read(set)
	log, end := logOf(s)
	log.Debug("low")
	log.Error("high")
	end()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	return string(text)
}

// asking is one HTTP request.
type asking struct {
	url, signed string
	form        url.Values
}

// asked is a server that answers every request with the same status, and remembers them.
type asked struct {
	url string
	mu  sync.Mutex
	had []asking
}

// refusalCode is the error code of its answers, in the form of EC2's.
const refusalCode = "RefusedByTest"

func newAsked(t *testing.T, status int) *asked {
	t.Helper()
	a := &asked{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_ = q.ParseForm() // a body that is none is an empty form
		a.mu.Lock()
		a.had = append(a.had, asking{q.URL.String(), q.Header.Get("Authorization"), q.PostForm})
		a.mu.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Response><Errors><Error><Code>"+refusalCode+"</Code></Error></Errors></Response>")
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	a.url = s.URL
	return a
}

func (a *asked) all() []asking {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.had)
}

// newENI is a call that makes an ENI.
func newENI() *ipam.Call {
	return &ipam.Call{Action: ipam.CreateENI, Subnet: "subnet-1", Groups: []string{"sg-1"}, Owner: "i-1", Token: "token"}
}

// created has the client of EC2 that ipamd makes of an environment make an ENI. It returns what EC2 was asked where no setting of
// upstream's says where it is, and how that was signed.
func (e *effect) created(set env) (form url.Values, signed string) {
	e.t.Helper()
	a := newAsked(e.t, http.StatusBadRequest)
	with := env{"AWS_ENDPOINT_URL": a.url}
	for name, value := range set {
		with[name] = value
	}
	_, c := e.read(with)
	if got := c.Cloud.Call(e.t.Context(), newENI()); got.Code != refusalCode {
		e.t.Fatalf("EC2 answers %+v", got)
	}
	if had := a.all(); len(had) == 1 {
		return had[0].form, had[0].signed
	}
	return nil, ""
}

// callsOf is an instance with room for no address on its primary ENI, and keeps what it is asked for.
type callsOf struct {
	*fixedCloud
	mu  sync.Mutex
	had []ipam.Call
}

func (c *callsOf) Metadata(ctx context.Context) (*ipam.IMDS, error) {
	m, err := c.fixedCloud.Metadata(ctx)
	if err == nil {
		m.Instance.Limits.Addresses = c.addresses + 1 // the primary one counts
	}
	return m, err
}

func (c *callsOf) Call(ctx context.Context, q *ipam.Call) ipam.Result {
	c.mu.Lock()
	c.had = append(c.had, *q)
	c.mu.Unlock()
	return c.fixedCloud.Call(ctx, q)
}

// first is the first call of that action; nil is none.
func (c *callsOf) first(a ipam.Action) *ipam.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.had, func(q ipam.Call) bool { return q.Action == a }); i >= 0 {
		return &c.had[i]
	}
	return nil
}

// runtimeOf is a runtime with one sandbox, which is not the daemon's.
type runtimeOf struct{ asked atomic.Int32 }

func (r *runtimeOf) Sandboxes(context.Context) ([]ipam.Sandbox, error) {
	r.asked.Add(1)
	return []ipam.Sandbox{{ID: "other", Pod: ipam.Pod{Namespace: "default", Name: "web-0"}, Ready: true,
		Address: netip.MustParseAddr("10.0.0.99")}}, nil
}
