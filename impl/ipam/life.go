package ipam

import (
	"math"
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// phase of a daemon's life.
type phase uint8

const (
	unborn phase = iota
	recovering
	serving
	stopping
)

// life is what all parts share while one daemon lives: its phase, what it knows of itself and its instance, and the
// effects of the step.
type life struct {
	Phase  phase
	Steps  uint64 // inputs so far; stamps rows and looks (contract 8)
	LastID ID
	Rng    uint64

	Boot     string
	Daemon   string
	Version  int
	Wall     int64
	Cluster  string
	Set      Settings
	Inst     Instance
	Known    bool // Inst is
	Deaf     bool // the facts on record are all that is known: metadata has not answered this daemon yet
	Witness  Witnesses
	Unread   string
	Surveyed bool // EC2 has said which ENIs are attached, and with what: before that nothing is asked of it
	First    bool // no daemon has started in this boot before
	Troubles [troubles]string

	policy *Policy
	out    []Effect // what the current step wants; handed out at its end
}

func (l *life) coolDown() time.Duration { return l.policy.CoolDown(l.Set) }

// wall is the wall clock in seconds since 1970, for tags.
func (l *life) wall(now time.Duration) int64 { return l.Wall + int64(now/time.Second) }

// trouble notes why a source cannot be believed; "" ends it.
func (l *life) trouble(t trouble, why string) {
	l.Troubles[t] = why
}

// token is a client token: unique over daemons by the seed, 64 characters at most.
func (l *life) token() string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 40)
	b = append(b, "enilab-"...)
	for range 24 {
		b = append(b, hex[int(l.random()*16)])
	}
	return string(b)
}

// backoff is the pause before the next try, of so many.
func (l *life) backoff(tries int) time.Duration {
	p := l.policy.Backoff(tries)
	if p.Jitter > 0 {
		p.Least += time.Duration(l.random() * float64(p.Jitter))
	}
	return p.Least
}

// random is from 0 to 1, without 1.
func (l *life) random() float64 { return float64(splitmix.Next(&l.Rng)>>11) / (1 << 53) }

func (l *life) id() ID {
	l.LastID++
	return l.LastID
}

func (l *life) emit(e Effect) { l.out = append(l.out, e) }

func (l *life) note(e Note) { l.out = append(l.out, &e) }

// trouble is a standing reason for bad health (rule J).
type trouble uint8

const (
	troubleRuntime trouble = iota
	troubleKernel
	troubleIMDS
	troubleHost
	troubleEC2
	troubleStore // of RunStore; the next one is LibStore's
	_
	troubleSurvey
	troubleAttach
	troubleFlows
	troubleAdded
	troubleGroups
	troublePrefixes
	troubleMaxPods
	troubles = iota
)
