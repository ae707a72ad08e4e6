package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
)

const jsonManual = `--json writes one document; times are seconds, "at" is an instant of the scenario:
  enilab "run/1", world, seed, exit (the exit code)
  errors[]   file, line, column, message, hint: why nothing was run (then exit is 2 and files is empty)
  verdicts[] verdict, exit, means: the table above; verdict is that of all files together
  files[]    file, name, headline, source, system (with --cni), given[] (tools that its machine has for it), status (a verdict),
             judged, skipped[] {line, why}, notJudged[] {invariant, needs[], line (of an always)}, unknown[] {line, system, settings[]},
             events, virtual, wall, report (the text for people), command,
             variants[] {name, error, ended, events, hash, judged, twice, same, broke, missed[] {line, at, text, times, of}, maybe[] {line, struck}, underWay[],
             unjudged[] {line, at, text} (expectations that failed, where the system does not know a setting),
             all[] {at, node, invariant, line, text}: all that broke, of each invariant the first ones, times {invariant: how
             often}, figures (world netns; durations in seconds) {adds,
             dels, failed (ADDs), add, del, start, ready, memory, calls, pods[] {made, ended (left out: it lives)}, flows, pairs},
             timeline[] (with --timeline)},
             mutants[]  {mutant, variant, line, expected, by, proved, why, broke},
             crashes[]  {variant, error, points, forks, broken[] {at, node, event, inFlight[], choice, what}},
             story, storyDiffers {line, golden, now}, updated
  broke      at, node, invariant (or line, of an expectation), text, before[], script[]`

func (l *cli) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "runs scenarios and their mutants",
		Long: `run carries out each scenario, in every variant, and then against each mutant that it names. A scenario holds when nothing
that is judged breaks, its golden timeline (seed 1) is told again word for word, and every mutant breaks, first and in time,
what its "against" line says. All files are checked before anything starts. FILE "-" is standard input; the name of a scenario that comes with
enilab (socket-mismatch) will do where there is no such file.

A twentieth of the runs, always the same ones, is run twice and compared: the simulator is deterministic.

--seeds A-B runs every file with every seed from A to B, as many at once as there are cores (worlds of this machine's kernel: one after
another), and tells one line for each file and the whole report of the first seed with which it is not as it should be.

--without-books judges the daemon as one of which only the outside is known: by the node's kernel, EC2's truth, what the runtime called and
was told, and packets. What needs more (enilab invariants) is not judged, and told as that.

--in vm plays world netns in a virtual machine of its own for every seed (QEMU without KVM, root or network), in virtual time: the same seed gives
the same bytes. --twice proves it. enilab vm kernels says which kernels there are, and what --arch arm64 needs.

` + pauseManual + `

` + outManual + `

` + reportManual + `

` + verdictManual() + "\n" + jsonManual + "\n" + seedsJSONManual,
		Example: `  enilab run socket-mismatch
  enilab run scenarios/*.scn
  enilab run scenarios/socket-mismatch.scn --seed 7
  enilab run scenarios/*.scn --seeds 1-200                         what holds with one seed only holds by luck
  enilab run scenarios/socket-mismatch.scn --against no-repair     one mutant alone: exit 1 when it breaks something
  enilab run scenarios/socket-mismatch.scn --update                take the timeline as it is told now
  enilab run scenarios/force-delete.scn --crash-everywhere
  enilab run scenarios/drift.scn --timeline                        all that happened, held or not
  enilab run --on netns --without-books scenarios/drift.scn        what can be judged of a daemon from outside alone
  enilab run --on netns --in vm --seed 7 scenarios/drift.scn       in a virtual machine: no root, and seed 7 is the same for ever
  enilab run --on netns --in vm --twice --out /tmp/drift scenarios/drift.scn
  enilab run --on netns --in vm --arch arm64 scenarios/drift.scn
  enilab run --on netns --in vm --pause-at 3m5s scenarios/drift.scn
  enilab run --on netns --cni amazon-vpc-cni-k8s@1.5.3 scenarios/socket-mismatch.scn
  enilab run --html report.html --junit report.xml scenarios/*.scn
  enilab run --on kind scenarios/socket-mismatch.scn               on a real kubelet and containerd; takes some minutes
  enilab run --on kind --mutants scenarios/socket-mismatch.scn
  enilab run --json scenarios/*.scn | jq '.files[] | select(.status != "held") | .name'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("run needs a scenario file (such as: enilab run scenarios/socket-mismatch.scn)")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.ranged, f.seeded = c.Flags().Changed("seeds"), c.Flags().Changed("seed")
			return l.runFiles(&f, args)
		},
	}
	f.on = "sim"
	c.Flags().Var(worldFlag{&f.on}, "on", "world to run in: sim (virtual time), netns (real processes on this machine's kernel; needs root on Linux), kind (a Kubernetes cluster; needs Docker too)")
	c.Flags().Uint64Var(&f.seed, "seed", runner.DefaultSeed, "seed of everything that is random")
	c.Flags().StringVar(&f.seeds, "seeds", "", "run with every seed of this range, such as 1-200")
	c.Flags().StringVar(&f.against, "against", "", "run this mutant alone (enilab mutants lists them)")
	c.Flags().BoolVar(&f.json, "json", false, "write one JSON document instead of text")
	f.reports.flags(c)
	c.Flags().StringVar(&f.reports.data, "runs", "", "what reports are made of, as JSON: inside of a virtual machine")
	_ = c.Flags().MarkHidden("runs")
	c.Flags().BoolVar(&f.update, "update", false, "rewrite the golden timelines of the files that hold")
	c.Flags().BoolVar(&f.crash, "crash-everywhere", false, "instead of the mutants: kill a daemon at every event and compare what settles")
	c.Flags().BoolVar(&f.keep, "keep", false, "with --on netns or kind: leave it up after each run, until Control-C, enilab netns clean or enilab down")
	c.Flags().StringVar(&f.name, "name", runName, "with --on kind: the cluster's name")
	c.Flags().BoolVar(&f.mutants, "mutants", false, "with --on kind: play the mutants that the files name too, each on a cluster of its own, which takes minutes")
	c.Flags().BoolVar(&f.blind, "without-books", false, "with --on netns: start the daemon without its recording, and judge it from outside alone")
	c.Flags().StringVar(&f.cni, "cni", "", "with --on netns: play this system, NAME@WHERE, in real time and judge it from outside (enilab systems lists them)")
	c.Flags().StringVar(&f.foundIn, "found", "", "systems that were found, as JSON: inside of a virtual machine")
	c.Flags().StringVar(&f.inside, "inside", "", "what --in was, inside of a virtual machine")
	c.Flags().Var(&f.branch, "branch-at", "inside of a virtual machine: where its run branches")
	_ = c.Flags().MarkHidden("branch-at")
	_ = c.Flags().MarkHidden("found")
	_ = c.Flags().MarkHidden("inside")
	c.Flags().BoolVar(&f.timeline, "timeline", false, "print all that happened in each variant's run, also when it held")
	c.Flags().BoolVar(&f.first, "stop-at-first", false, "end each run at its first violation")
	c.Flags().BoolVar(&f.twice, "twice", false, "run everything twice and compare")
	c.Flags().Var(&f.in, "in", "with --on netns: vm plays it in a virtual machine, which repeats and needs no root; vm=KERNEL names a vmlinuz or a Debian kernel package")
	c.Flags().StringVar(&f.arch, "arch", runtime.GOARCH, "with --in vm: what the virtual machine is, amd64 or arm64")
	c.Flags().Var(&f.pause, "pause-at", "with --in vm: stop everything for good at this instant of the scenario, and give a shell there")
	c.Flags().Var(&f.clock, "clock", "with --on netns: leap over what nobody does, or machine, the machine's own time (in a virtual machine, which leaps by itself, the default)")
	c.Flags().StringVar(&f.out, "out", "", "with --on netns: write report, timeline, EC2's calls and packets of every run into this folder")
	c.Flags().DurationVar(&f.timeout, "timeout", vm.Limit,
		"with --in vm: how long a machine may take, in this computer's time")
	return c
}

func (l *cli) runFiles(f *runFlags, names []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := f.checkPause(names); err != nil {
		return err
	}
	var seeds runner.Seeds
	if f.ranged {
		if seeds, err = f.seedRange(); err != nil {
			return err
		}
	}
	if err := f.reports.check(names); err != nil {
		return err
	}
	o.Record = f.reports.detailed()
	if f.out != "" && !f.in.given {
		f.outputs = &outputs{folder: f.out}
	}
	place, err := l.place(f)
	if err != nil {
		return err
	}
	cases, err := l.load(place, names)
	if err != nil {
		switch d := runner.NewDocument(f.on, f.seed, runner.ExitBad); {
		case f.json && f.ranged:
			d := sweepOf(f, seeds, nil, runner.ExitBad)
			d.Refuse(err)
			return l.writeJSON(d, d.Exit)
		case f.json:
			d.Refuse(err)
			return l.writeJSON(d, d.Exit)
		}
		return l.refuse(err)
	}
	if err := f.checkUpdate(names); err != nil {
		return err
	}
	if f.crash {
		for _, c := range cases {
			if err := c.Crashable(); err != nil {
				return usage("%v", err)
			}
		}
	}
	if err := f.checkOut(cases); err != nil {
		return err
	}
	if err := f.pauseWithin(cases); err != nil {
		return err
	}
	if f.in.given {
		return l.runInMachine(f, seeds, cases, names)
	}
	if f.on == "netns" && f.inside == "" { // what a virtual machine lacks was said before it started
		if err := vm.Equip(f.found); err != nil {
			return l.machineError(err)
		}
	}
	place.Given = vm.Given(f.found)
	if f.on == "kind" { // once, and not in every variant of every file
		if err := l.kindPossible(f.name); err != nil {
			return err
		}
	}
	o.Interrupted = l.interrupted
	if f.outputs != nil {
		o.Begins = f.outputs.begins
	}
	p, cluster := newProgress(l.err), ""
	if f.on == "kind" {
		cluster = f.name
	}
	defer l.deadline(p, cluster)()
	if f.on != "sim" && f.inside == "" { // a machine's own clock says nothing of how long its user waits
		defer p.breaks(silence)()
	}
	if f.ranged {
		return l.sweepFiles(f, seeds, o, cases, p)
	}
	o.Progress = p.tell
	if f.keep {
		o.Linger = l.stay
	}
	var done []*runner.Result
	page := l.page("run")
	var running *runner.Case
	if err := l.pausable(f, &o, place, func() *runner.Case { return running }); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	for _, c := range cases {
		running = c
		if l.interrupted() {
			break
		}
		r := c.Run(o)
		if f.outputs != nil {
			f.outputs.report(r)
		}
		if f.reports.wanted() {
			page.Runs = append(page.Runs, report.Of(r)...)
			r.Forget()
		}
		if f.update {
			if err := updateStory(r); err != nil {
				return &exit{runner.ExitLacking, err.Error()}
			}
		}
		done = append(done, r)
		p.clear()
		if !f.json {
			l.report(r)
			if f.timeline {
				l.timelines(r)
			}
		}
	}
	if f.outputs != nil && f.outputs.err != nil {
		return &exit{runner.ExitLacking, f.outputs.err.Error()}
	}
	page.Runs = append(page.Runs, notPlayed(cases[len(done):], f.seed, runner.Interrupted, "interrupted before it began")...)
	if err := f.reports.write(page); err != nil {
		return err
	}
	code := together(done, len(cases))
	if f.json {
		return l.writeJSON(runner.NewDocument(f.on, f.seed, code, done...), code)
	}
	l.total(done, cases)
	l.named(&f.reports)
	return ended(code)
}

// updateStory writes the story into the file when everything else held.
func updateStory(r *runner.Result) error {
	f := r.Case.File
	if r.Status != runner.Held {
		return nil
	}
	g := f.WithStory(r.Story)
	if g.String() == f.String() {
		return nil
	}
	r.Updated = true
	return rewrite(f.Name, f.String(), g.String())
}
