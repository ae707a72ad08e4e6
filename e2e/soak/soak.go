package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// cluster is the node: four ENIs of 14 addresses each.
const cluster = `# Everything is killed.
# Source: rules F and I.
cluster nodes=1 type=m5.xlarge subnet=10.0.0.0/22 runtime=containerd
config  IP_COOLDOWN_PERIOD=5
always  "nothing is leaked"
`

// Settings: with tight targets addresses and ENIs come and go with the pods. Which ENI has the last few is chance, so to find out what is
// left the node is told to keep whole ENIs: an idle one then has exactly one.
const (
	tight = "WARM_IP_TARGET=3 MINIMUM_IP_TARGET=6"
	whole = "WARM_IP_TARGET=0 MINIMUM_IP_TARGET=0 WARM_ENI_TARGET=1"
)

const (
	target = 1 // the node
	// Kills are this far apart, in laboratory time.
	leastPause, mostPause = 100 * time.Millisecond, 2 * time.Second
	// restartPause is from a daemon's end to the next one's start: short, for a dead one cannot be killed.
	restartPause = 50 * time.Millisecond
	// pluginShare of a hundred plugins are aimed at, within as long as one that has nobody to wait for takes on a busy machine.
	pluginShare, pluginTime = 20, 10 * time.Millisecond
	// sleepTime is how long a daemon is waited for to have something to do, and workTime how far into it it may get.
	sleepTime, workTime = 300 * time.Millisecond, 10 * time.Millisecond
	// churnPause is between two changes of the workloads.
	churnPause = 300 * time.Millisecond
	// settleLimit is how long the cluster may take to settle: EC2 may be asked for few ENIs an hour, and gives them back slowly.
	settleLimit = time.Hour
	// quietTime is how long nothing may be under way before it has settled: kubelet's garbage collection comes every minute.
	quietTime = 3 * time.Minute
	// abandoned is older than what impl/ipc takes for the unfinished file of a dead plugin. Files have the machine's time, which does
	// not jump.
	abandoned = time.Hour
	// slack is how much longer than expected a soak may take to reach its figures.
	slack = 10
)

// soak is a run under way.
type soak struct {
	*netns.World
	node               netns.Handle
	r                  *Report
	random             *rand.Rand
	idle               node.Inventory
	began              time.Duration // of the churn
	adds, dels, failed int           // before it
}

// Run makes a laboratory, kills, and judges. The error is about the laboratory: nothing was judged.
func Run(p netns.Parts, o Options) (*Report, error) {
	began := time.Now()
	f, err := scn.Parse("soak", []byte(cluster))
	if err != nil {
		return nil, err
	}
	c, err := sim.Check(f)
	if err != nil {
		return nil, err
	}
	if o.Log != nil {
		p.Log = o.Log
	}
	w, err := netns.Open(c, o.Seed, nil, p)
	if err != nil {
		return nil, err
	}
	s := &soak{World: w, node: w.Handle(target), r: &Report{Options: o}, random: rand.New(rand.NewPCG(o.Seed, 0))}
	err = s.run()
	s.r.Virtual, s.r.Wall = w.Now(), time.Since(began)
	if e := w.Close(); err == nil {
		err = e
	}
	return s.r, err
}

func (s *soak) run() error {
	s.node.RestartAfter(restartPause)
	s.do("kube create web 10", "kube create db 4 kind=statefulset")
	s.wait(time.Minute)
	s.do("kube scale web 30")
	s.wait(time.Minute)
	if err := s.empty(); err != nil {
		return fmt.Errorf("before the first kill: %w", err)
	}
	var err error
	if s.idle, err = s.node.Inventory(); err != nil {
		return err
	}
	s.churn()
	return s.judge()
}

// do carries out actions, as a scenario does.
func (s *soak) do(actions ...string) {
	for _, text := range actions {
		f, err := scn.Parse("soak", []byte(cluster+"at 0s "+text+"\n"))
		if err != nil {
			panic("soak: " + err.Error()) // the texts are this package's own
		}
		act, bad := verb.Bind(f.Lines[len(f.Lines)-1].Stmt.(*scn.At).Action)
		if bad != nil {
			panic("soak: " + bad.Error())
		}
		s.Do(act)
	}
}

// wait lets time pass.
func (s *soak) wait(d time.Duration) { s.Until(s.Now()+d, s.over) }

// over says whether nothing that happens from here on means anything.
func (s *soak) over() bool {
	_, broken := s.Audit().First()
	return broken || s.Err() != nil || len(s.Disagreements()) > 0 || len(s.Crashes()) > 0
}

// empty scales the workloads to nothing and waits until nothing is under way for a while.
func (s *soak) empty() error {
	s.do("node-1 restart "+whole, "kube scale web 0", "kube scale db 0")
	end, quiet := s.Now()+settleLimit, s.Now()
	for s.Now()-quiet < quietTime && !s.over() {
		if s.Now() > end {
			return fmt.Errorf("the cluster has not settled within %v: %s", settleLimit, s.unsettled())
		}
		s.wait(time.Second)
		if s.unsettled() != "" {
			quiet = s.Now()
		}
	}
	return s.Err()
}

// unsettled names what is not as on an idle node; "" is nothing.
func (s *soak) unsettled() string {
	if why := s.Unready(); why != "" {
		return why
	}
	if n, _ := s.Measure(scn.Subject{Kind: scn.Node, Node: target}, "enis"); n != 1 {
		return fmt.Sprintf("%d ENIs", n)
	}
	return ""
}

// churn kills and lets pods come and go until it is enough.
func (s *soak) churn() {
	s.began = s.Now()
	c := s.node.Runtime()
	s.adds, s.dels, s.failed = c.ADDs, c.DELs, c.FailedADDs
	s.do("node-1 restart "+tight, "kube scale web 20", "kube scale db 6")
	s.node.KillPlugins(pluginShare, pluginTime)
	limit := s.Now() + slack*time.Duration(s.r.Options.Daemons)*mostPause
	kill, change := s.Now(), s.Now()
	for s.wanting() && !s.over() && s.Now() < limit {
		s.wait(max(min(kill, change)-s.Now(), 0))
		if s.Now() >= change {
			s.change()
			change = s.Now() + s.between(churnPause/2, churnPause)
		}
		if s.Now() >= kill {
			s.kill()
			kill = s.Now() + s.between(leastPause, mostPause)
		}
	}
	s.node.KillPlugins(0, 1)
	s.r.Churn = s.Now() - s.began
}

// wanting says whether something has not happened often enough, and counts.
func (s *soak) wanting() bool {
	c, r := s.node.Runtime(), s.r
	r.ADDs, r.DELs, r.FailedADDs, r.Plugins = c.ADDs-s.adds, c.DELs-s.dels, c.FailedADDs-s.failed, s.node.PluginsKilled()
	o := &r.Options
	return r.Daemons < o.Daemons || r.Plugins < o.Plugins || r.ADDs-r.FailedADDs < o.ADDs || r.DELs < o.ADDs
}

func (s *soak) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// kill kills the daemon in the middle of its work: once it has something to do, a moment later. One that has nothing to do for a while
// is killed in its sleep.
func (s *soak) kill() {
	s.Until(s.Now()+sleepTime, func() bool { return s.over() || s.node.Works() })
	s.wait(s.between(0, workTime))
	works := s.node.Works()
	if s.node.Kill() {
		s.r.Daemons++
		if works {
			s.r.Busy++
		}
	}
}

// change is what users do to their pods.
func (s *soak) change() {
	switch i := s.random.IntN(20); {
	case i < 12:
		s.do(fmt.Sprintf("kube roll web %d", 1+s.random.IntN(2)))
	case i < 15:
		s.do(fmt.Sprintf("pod db-%d delete", s.random.IntN(6)))
	case i < 17:
		s.do(fmt.Sprintf("pod db-%d force-delete", s.random.IntN(6)))
	case i < 18:
		s.do(fmt.Sprintf("pod web-%d force-delete", s.random.IntN(10)))
	default:
		s.do(fmt.Sprintf("kube scale web %d", 10+s.random.IntN(25)))
	}
}

// judge lets the cluster settle and finds what is not as it should be.
func (s *soak) judge() error {
	s.wanting()
	s.EndFaults()
	stuck := s.empty()
	if s.Err() == nil && !s.over() {
		stuck = s.sweep(stuck)
		s.Settle()
	}
	for _, v := range s.Audit().Violations() {
		v.At -= s.Epoch()
		s.problem("%v node-%d breaks %v: %s", v.At.Round(time.Millisecond), v.Node, v.Invariant, v.Text)
	}
	for _, d := range s.Disagreements() {
		s.problem("core or model and the real thing disagree: %s", d)
	}
	for _, c := range s.Crashes() {
		s.problem("%v %s", c.At.Round(time.Millisecond), c.Text)
	}
	if s.Err() != nil {
		return s.Err()
	}
	if stuck != nil {
		s.problem("%v", stuck)
	}
	s.short("daemons killed", s.r.Daemons, s.r.Options.Daemons)
	s.short("plugins killed", s.r.Plugins, s.r.Options.Plugins)
	s.short("ADDs that succeeded", s.r.ADDs-s.r.FailedADDs, s.r.Options.ADDs)
	s.short("DELs", s.r.DELs, s.r.Options.ADDs)
	if n, ok := s.Measure(scn.Subject{Kind: scn.EC2}, "calls.CreateNetworkInterface"); ok {
		s.r.ENIs = int(n)
	}
	return s.leaks()
}

func (s *soak) problem(format string, args ...any) {
	s.r.Problems = append(s.r.Problems, fmt.Sprintf(format, args...))
}

func (s *soak) short(what string, got, want int) {
	if got < want {
		s.problem("%s: expected at least %d, found %d: the soak ended early", what, want, got)
	}
}

// sweep makes the unfinished files of dead plugins old, and waits for the daemon to remove them.
func (s *soak) sweep(stuck error) error {
	files, err := filepath.Glob(filepath.Join(s.node.Box().Root(), "run/aws-node/del/.*"))
	if err != nil || len(files) == 0 {
		return stuck
	}
	for _, f := range files {
		then := time.Now().Add(-abandoned)
		_ = os.Chtimes(f, then, then) // it may have gone
	}
	s.wait(quietTime)
	return stuck
}

// leaks compares the node with what it was when it was idle before.
func (s *soak) leaks() error {
	now, err := s.node.Inventory()
	if err != nil {
		return err
	}
	diff := slices.DeleteFunc(s.idle.Diff(now), s.libcnis)
	if len(diff) > 0 {
		s.problem("compared with the idle node before the first kill (+: more now):\n  %s", strings.Join(diff, "\n  "))
	}
	return nil
}

// libcnis says whether what is left is what libcni keeps of a sandbox that the runtime has forgotten: its DEL was killed, and there is no
// other. Nothing else may be left of that sandbox.
func (s *soak) libcnis(line string) bool {
	return slices.ContainsFunc(s.node.Forgotten(), func(id string) bool {
		return line == "+ file "+node.CacheDir+"/results/aws-cni-"+id+"-eth0"
	})
}
