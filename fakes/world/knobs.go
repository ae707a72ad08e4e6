package world

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// knobs are those that can be set for the world and, over that, for a region.
type knobs struct {
	latency  ec2.Latency
	lag      ec2.Lag
	throttle ec2.Throttle
	quotas   quotas
}

// quotas are what an account may have in a region, and what the region itself has.
type quotas struct {
	enis, vcpus   int
	capacity      []ec2.Capacity
	terminatedFor time.Duration
	multiVPC      bool
	fullIsInvalid bool
}

// ReadKnobs reads latency and lag alone, for a world that runs, onto what they are. The error is an Errors.
func ReadKnobs(name string, data []byte, latency *ec2.Latency, lag *ec2.Lag) error {
	r := &reader{strictyaml.NewReader(name)}
	k := knobs{latency: *latency, lag: *lag}
	if n := r.Tree(data, form); n != nil {
		r.object(n, "the knobs", r.knobFields(&k)[:2]...)
	}
	if err := r.Err(); err != nil {
		return err
	}
	*latency, *lag = k.latency, k.lag
	return nil
}

// off is what a bucket holds that is never emptied.
const off = 1 << 30

// knobFields read the knobs of a mapping. What they do not name stays as it is.
func (r *reader) knobFields(k *knobs) []field {
	return []field{
		{"latency", func(n *yaml.Node) { r.latency(n, &k.latency) }},
		{"lag", func(n *yaml.Node) { r.lag(n, &k.lag) }},
		{"throttle", func(n *yaml.Node) { r.throttle(n, &k.throttle) }},
		r.number("eni-quota", 1, 1<<20, &k.quotas.enis), r.number("vcpu-quota", 1, 1<<30, &k.quotas.vcpus),
		r.duration("terminated-for", &k.quotas.terminatedFor), r.flag("multi-vpc-attach", &k.quotas.multiVPC),
		r.flag("full-is-invalid-value", &k.quotas.fullIsInvalid),
		{"capacity", func(n *yaml.Node) {
			k.quotas.capacity = nil
			r.List(n, "capacity", func(n *yaml.Node) { k.quotas.capacity = append(k.quotas.capacity, r.capacity(n)) })
		}},
	}
}

// capacity is {type: m5.large, zone: us-west-2a, instances: 3}; not-offered instead of a number takes the type out of the catalogue.
func (r *reader) capacity(n *yaml.Node) (c ec2.Capacity) {
	o := r.object(n, "a capacity", r.text("type", &c.Type), r.text("zone", &c.Zone), field{"instances", func(n *yaml.Node) {
		r.Scalar(n, "instances", "a whole number from 0, or not-offered", func(s string) bool {
			v, err := strconv.Atoi(s)
			c.Instances = v
			if s == "not-offered" {
				c.Instances = -1
				return true
			}
			return err == nil && v >= 0
		})
	}})
	r.Need(n, &o, "a capacity", "instances")
	if _, ok := ec2.LimitsOf(c.Type); c.Type != "" && !ok {
		r.Add(o.At("type"), strictyaml.Meant(c.Type, types()), "there is no instance type %q in the table", strictyaml.Shortened(c.Type))
	}
	return c
}

// word says whether a knob is set by one word instead of key by key.
func word(n *yaml.Node, w string) bool { return n.Kind == yaml.ScalarNode && n.Value == w }

const (
	knobWords = "none, published, or keys and values"
	lagWords  = "none, usual, published, or keys and values"
)

// usual is the published lag, but that replicas are behind by less than an answer and the next request take at the published latency: an SDK's
// waiter gives up for good on a NotFound of what has just been made, and scripts do, which EC2 does not rule out and seldom does.
var usual = ec2.Lag{Describe: replicas, Mutation: replicas}

var replicas = ec2.Span{Median: 5 * time.Millisecond, Max: 25 * time.Millisecond}

func (r *reader) latency(n *yaml.Node, l *ec2.Latency) {
	zero := ec2.Always(0)
	switch {
	case word(n, "published"):
		*l = ec2.Latency{}
	case word(n, "none"):
		for _, s := range latencySpans(l) {
			*s.to = zero
		}
		for a := range l.Call {
			l.Call[a] = zero
		}
	case r.Is(n, yaml.MappingNode, "latency", knobWords):
		var all ec2.Span
		var each [ec2.ActionCount]ec2.Span
		fields := []field{r.span("call", &all), r.perAction("calls", func(a ec2.Action, n *yaml.Node) { r.span(a.String(), &each[a]).read(n) })}
		for _, s := range latencySpans(l) {
			fields = append(fields, r.span(s.key, s.to))
		}
		r.object(n, "latency", fields...)
		for a := range each {
			for _, s := range []ec2.Span{all, each[a]} {
				if s != (ec2.Span{}) {
					l.Call[a] = s
				}
			}
		}
	}
}

func (r *reader) lag(n *yaml.Node, l *ec2.Lag) {
	spans := lagSpans(l)
	switch {
	case word(n, "published"):
		*l = ec2.Lag{}
	case word(n, "usual"):
		*l = usual
	case word(n, "none"):
		for _, s := range spans {
			*s.to = ec2.Always(0)
		}
		l.Monotonic = true
	case r.Is(n, yaml.MappingNode, "lag", lagWords):
		var fields []field
		for _, s := range spans {
			fields = append(fields, r.span(s.key, s.to))
		}
		r.object(n, "lag", append(fields, r.flag("monotonic", &l.Monotonic))...)
	}
}

type namedSpan struct {
	key string
	to  *ec2.Span
}

func latencySpans(l *ec2.Latency) []namedSpan {
	return []namedSpan{{"attach", &l.Attach}, {"link", &l.Link}, {"detach", &l.Detach}, {"launch", &l.Launch}, {"terminate", &l.Terminate},
		{"reboot", &l.Reboot}, {"stop", &l.Stop}}
}

func lagSpans(l *ec2.Lag) []namedSpan {
	return []namedSpan{
		{"imds-attach", &l.IMDSAttach}, {"imds-partial", &l.IMDSPartial}, {"imds-address", &l.IMDSAddress}, {"imds-detach", &l.IMDSDetach},
		{"describe", &l.Describe}, {"mutation", &l.Mutation}, {"freed-address", &l.FreedAddress},
		{"available", &l.Available},
	}
}

func (r *reader) throttle(n *yaml.Node, t *ec2.Throttle) {
	switch {
	case word(n, "published"):
		*t = ec2.Throttle{}
	case word(n, "none"):
		for a := range t.Action {
			full := ec2.Bucket{Capacity: off, RefillPerSecond: off}
			t.Action[a], t.Unfiltered[a], t.Resources[a] = full, full, full
		}
	case r.Is(n, yaml.MappingNode, "throttle", knobWords):
		r.object(n, "throttle",
			r.perAction("actions", func(a ec2.Action, n *yaml.Node) { r.bucket(n, &t.Action[a]) }),
			r.perAction("unfiltered", func(a ec2.Action, n *yaml.Node) { r.bucket(n, &t.Unfiltered[a]) }),
			r.perAction("resources", func(a ec2.Action, n *yaml.Node) { r.bucket(n, &t.Resources[a]) }))
	}
}

// perAction reads a mapping whose keys are actions.
func (r *reader) perAction(key string, each func(ec2.Action, *yaml.Node)) field {
	return field{key, func(n *yaml.Node) {
		r.Mapping(n, key, func(k, v *yaml.Node) {
			a, ok := ec2.ParseAction(k.Value)
			if !ok || a == ec2.AnyAction {
				r.Add(strictyaml.PlaceOf(k), strictyaml.Meant(k.Value, actions()), "there is no action %q", strictyaml.Shortened(k.Value))
				return
			}
			each(a, v)
		})
	}}
}

func actions() (out []string) {
	for a := ec2.AnyAction + 1; a < ec2.ActionCount; a++ {
		out = append(out, a.String())
	}
	return out
}

// bucket is {capacity: N, refill: N}, the refill in tokens a second.
func (r *reader) bucket(n *yaml.Node, b *ec2.Bucket) {
	o := r.object(n, "a bucket", r.number("capacity", 1, off, &b.Capacity), r.number("refill", 0, off, &b.RefillPerSecond))
	for _, key := range []string{"capacity", "refill"} {
		if _, ok := o.Keys[key]; !ok && n.Kind == yaml.MappingNode {
			r.Add(o.Begin, "as {capacity: 50, refill: 5}, the refill in tokens a second", "a bucket has no %s", key)
		}
	}
}

// span is one duration, or [min, median, max].
func (r *reader) span(key string, to *ec2.Span) field {
	return field{key, func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.Scalar(n, key, "a duration such as 250ms, or [min, median, max]", func(s string) bool {
				var d time.Duration
				ok := strictyaml.ParseDuration(s, &d)
				*to = ec2.Always(d)
				return ok
			})
			return
		}
		var three []time.Duration
		r.List(n, key, func(e *yaml.Node) {
			var d time.Duration
			r.duration(key, &d).read(e)
			three = append(three, d)
		})
		if len(three) != 3 || three[0] > three[1] || three[1] > three[2] {
			r.Add(strictyaml.PlaceOf(n), "as [1s, 2500ms, 6s]", "%s: expected three durations, the shortest first, found %d", key, len(three))
			return
		}
		if *to = (ec2.Span{Min: three[0], Median: three[1], Max: three[2]}); *to == (ec2.Span{}) {
			*to = ec2.Always(0)
		}
	}}
}
