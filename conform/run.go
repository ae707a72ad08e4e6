package conform

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/internal/wait"
)

// tagKey is on everything that a run makes; its value is the run's and the row's name.
const tagKey = "enilab-conform"

// Config says what is asked of whom.
type Config struct {
	Endpoint string // http://127.0.0.1:4566
	Region   string // default us-west-2
	// AccessKey and Secret sign the calls; SessionToken goes with temporary ones. Default "test" and "test": most fakes take anything.
	AccessKey, Secret, SessionToken string
	// Subnet is where interfaces are made; "": the one with the most free addresses, beside the instance.
	Subnet string
	// Instance is what interfaces are attached to. "": a running one is looked for, but not on AWS, where it could be in
	// production.
	Instance string
	// Image is what RunInstances of Costly rows starts; it need not exist on most fakes.
	Image string
	// Marks are the kinds of rows that are asked beside those that have no mark. (Attaches is no kind: it needs an instance.)
	Marks Marks
	// Rows picks rows by name, as path.Match does ("attach.*"); nil: all.
	Rows []string
	// Tell is called before each row; nil: not.
	Tell func(number, of int, row *Row)
	// Now and Sleep are the clock that rows wait by; nil: the real one.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	HTTP  *http.Client // nil: one with a time-out of a minute
}

// Outcome is how a row ended.
type Outcome string

const (
	Same    Outcome = "same"    // as the real thing
	Differs Outcome = "differs" // Result.Found says how
	Skipped Outcome = "skipped" // Result.Found says why
)

// Result is what became of a row.
type Result struct {
	Row     Row
	Outcome Outcome
	Found   string        // what differed, or why it was skipped
	Left    []string      // what the row made and could not take away
	Took    time.Duration // by Config.Now
}

// ErrConfig is what every error about the Config is.
var ErrConfig = errors.New("conform")

// errUnreachable is what an endpoint that answers nothing at all is reported as. When that was so from some row on, there is a report of
// the rows before it, too.
var errUnreachable = errors.New("the endpoint does not answer")

// EC2 asks the rows of EC2Rows. The error says why nothing could be asked; what differs is in the report.
func EC2(ctx context.Context, c Config) (*Report, error) {
	l, err := newLab(c)
	if err != nil {
		return nil, err
	}
	if err := l.find(ctx); err != nil {
		return nil, err
	}
	return l.all(ctx, "ec2", EC2Rows())
}

// IMDS asks the rows of IMDSRows.
func IMDS(ctx context.Context, c Config) (*Report, error) {
	l, err := newLab(c)
	if err != nil {
		return nil, err
	}
	q := http.Request{Method: http.MethodPut, URL: l.url("/latest/api/token"), Header: http.Header{ttlHeader: {"60"}}}
	if _, err := l.roundTrip(ctx, &q); err != nil {
		return nil, fmt.Errorf("conform imds: %w: %w", errUnreachable, err)
	}
	return l.all(ctx, "imds", IMDSRows())
}

// lab is an endpoint, and what rows find there.
type lab struct {
	Config
	base *url.URL
	run  string // names the run in tags
	place
	calls int                   // made so far: makes names unique
	gone  atomic.Pointer[error] // why the last request found no endpoint; nil: it did. Some rows make many at once
}

func newLab(c Config) (*lab, error) {
	u, err := url.Parse(strings.TrimSuffix(c.Endpoint, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: the endpoint %q is no URL with a host: write one like http://127.0.0.1:4566", ErrConfig, c.Endpoint)
	}
	for _, p := range c.Rows {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%w: the pattern %q: %w: write one like attach.*", ErrConfig, p, err)
		}
	}
	l := &lab{Config: c, base: u}
	or(&l.Region, "us-west-2")
	or(&l.Image, "ami-0abcdef1234567890")
	if l.AccessKey == "" {
		l.AccessKey, l.Secret, l.SessionToken = "test", "test", ""
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Sleep == nil {
		l.Sleep = wait.For
	}
	if l.HTTP == nil {
		l.HTTP = &http.Client{Timeout: time.Minute}
	}
	l.run = strconv.FormatInt(l.Now().UnixNano(), 36)
	return l, nil
}

func or(s *string, other string) {
	if *s == "" {
		*s = other
	}
}

// url is the endpoint with a path, which is sent as it is written.
func (l *lab) url(path string) *url.URL {
	u := *l.base
	u.RawPath = strings.TrimSuffix(u.Path, "/") + path
	u.Path, _ = url.PathUnescape(u.RawPath) // what cannot be unescaped is not sent: the tables have none
	return &u
}

// real says whether the endpoint is AWS's.
func (l *lab) real() bool {
	h := l.base.Hostname()
	return strings.HasSuffix(h, ".amazonaws.com") || strings.HasSuffix(h, ".amazonaws.com.cn") || strings.HasSuffix(h, ".api.aws")
}

// all asks every row that is wanted, one after another. It ends early, with what there is, when ctx does, and when the endpoint is gone.
func (l *lab) all(ctx context.Context, table string, rows []Row) (*Report, error) {
	r := &Report{Table: table, Endpoint: l.Endpoint, Began: l.Now()}
	var wanted []Row
	for _, row := range rows {
		if l.wants(row.Name) {
			wanted = append(wanted, row)
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("%w %s: no row is called %s: --list names them all", ErrConfig, table, strings.Join(l.Rows, " or "))
	}
	for k := range wanted {
		if ctx.Err() != nil {
			r.Interrupted = true
			break
		}
		if l.Tell != nil {
			l.Tell(k+1, len(wanted), &wanted[k])
		}
		res := l.one(ctx, &wanted[k])
		if gone := l.gone.Load(); gone != nil && ctx.Err() == nil {
			return r, fmt.Errorf("conform %s: %w any more, since row %d of %d, %s: %w", table, errUnreachable, k+1, len(wanted), wanted[k].Name, *gone)
		}
		r.Results = append(r.Results, res)
	}
	return r, nil
}

func (l *lab) wants(name string) bool {
	for _, p := range l.Rows {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return len(l.Rows) == 0
}

// one asks a row and clears up behind it.
func (l *lab) one(ctx context.Context, row *Row) Result {
	began := l.Now()
	res := Result{Row: *row, Outcome: Same}
	t := &try{lab: l, ctx: ctx, row: row, made: map[string]*made{}}
	if missing := row.Marks &^ l.Marks &^ Attaches; missing != 0 {
		t.skip("it is marked %s: ask for it with --%s", missing, strings.Join(missing.Names(), " --"))
	}
	if t.err == nil && row.Marks&Attaches != 0 {
		t.needInstance()
	}
	if t.err == nil {
		row.run(t)
	}
	interrupted := ctx.Err() != nil
	t.clearUp()
	res.Left, res.Took = t.left, l.Now().Sub(began)
	var s *skipped
	switch {
	case interrupted:
		res.Outcome, res.Found = Skipped, "interrupted"
	case errors.As(t.err, &s):
		res.Outcome, res.Found = Skipped, s.why
	case t.err != nil:
		res.Outcome, res.Found = Differs, t.err.Error()
	}
	return res
}
