// Command atlas gates released versions of amazon-vpc-cni-k8s that are at hand, each pair in a process of enilab gate, and writes what their upgrades
// break as docs/upgrades.md: from 1.21 on each release to the next one, and from 1.18 on each minor's last release to the next minor's first and last.
//
//	make atlas                                what ENILAB_SYSTEMS has
//	make atlas PAIRS="1.21.2..1.22.0"         these pairs alone; of the others the file keeps what it has
//
// What a pair gave stays in bin/atlas, and what rests on the same enilab and the same files is not gated again; with -keep, nothing that ever was is, and
// the file names all the builds of enilab. Interrupted, it writes what is known, and goes on from there the next time; a pair whose gate ran out of time
// goes on too, for the gate keeps each run. What upstream's tracker says of a finding is in upstream.yaml, by hand; an entry for something that is not found
// any more is told, and ends the command with exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
)

// system is whose upgrades are gated.
const system = "amazon-vpc-cni-k8s"

// grace is how long a gate may take to end once its own time is over.
const grace = 3 * time.Minute

// asked is how the command was called.
type asked struct {
	since, minors string
	only          []string
	workers       int
	figures       bool
	limit         time.Duration
	to, record    string
	*campaign.Command
}

func main() {
	a := asked{Command: campaign.Declare("atlas", "gate", "gated", "ipamd and aws-cni")}
	flag.StringVar(&a.since, "since", "1.21", "the minor from which on each release is gated to the next one")
	flag.StringVar(&a.minors, "minors", "1.18", "the minor from which on each one's last release is gated to the next one's first and last")
	only := flag.String("only", "", "gate these pairs alone, such as 1.21.2..1.22.0, with spaces or commas between them")
	flag.IntVar(&a.workers, "j", 1, "gates at once; each has as many machines as there are cores")
	flag.BoolVar(&a.figures, "figures", true, "compare figures too")
	flag.DurationVar(&a.limit, "timeout", time.Hour, "how long a gate may take; what was played by then is known, and the next time it goes on")
	flag.StringVar(&a.to, "to", filepath.Join("docs", "upgrades.md"), "file to write")
	flag.StringVar(&a.record, "upstream", filepath.Join("gate", "atlas", "upstream.yaml"), "upstream's releases, and what its tracker says")
	a.Main(func(ctx context.Context) error {
		a.only = campaign.Words(*only)
		return a.run(ctx)
	})
}

// run gates what has to be gated and writes the file.
func (a *asked) run(ctx context.Context) error {
	switch {
	case a.workers < 1:
		return fmt.Errorf("-j %d: expected at least one gate at once", a.workers)
	case a.limit <= 0:
		return fmt.Errorf("-timeout %v: expected a duration such as 40m", a.limit)
	}
	if why := campaign.Lacking(); why != "" {
		fmt.Println("skipped: " + why)
		return nil
	}
	up, err := readUpstream(a.record)
	if err != nil {
		return err
	}
	atHand, err := campaign.AtHand(system)
	if err != nil {
		return err
	}
	t := &atlas{Since: a.since, Minors: a.minors, Pairs: pairs(slices.Concat(up.Releases, atHand), a.since, a.minors)}
	if t.QEMU, err = campaign.QEMU(); err != nil {
		return err
	}
	before, err := os.ReadFile(a.to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	t.kept = keep(string(before))
	for _, o := range a.only {
		if !slices.ContainsFunc(t.Pairs, func(p pair) bool { return p.String() == o }) {
			return fmt.Errorf("-only %s: expected one of %s", o, list(t.Pairs))
		}
	}
	c, err := a.Open()
	if err != nil {
		return err
	}
	if err := a.gate(ctx, c, t, atHand); err != nil {
		return err
	}
	text, stale := t.text(up)
	if err := campaign.Replace(a.to, text); err != nil {
		return err
	}
	if len(stale) > 0 {
		return errors.New(a.record + " has entries for what is not found any more: " + strings.Join(stale, "; ") + ": take them out, or see what has changed")
	}
	return ctx.Err()
}

// gate fills the pairs.
func (a *asked) gate(ctx context.Context, c *campaign.Campaign, t *atlas, atHand []string) error {
	var jobs []campaign.Job
	order := playOrder(t.Pairs)
	for _, i := range order {
		p := t.Pairs[i]
		args, files := p.args(a.figures), []string{scenario}
		told := []string{"--json", "-", "--timeout", a.limit.String()}
		if p.Mode == "" {
			told = append(told, scenario)
		}
		for _, v := range []string{p.From, p.To} {
			if v != ours {
				files = append(files, p.folder(v))
			}
		}
		j := campaign.Job{Name: system + "@" + p.String(), Limit: a.limit + grace, Done: ended, Args: slices.Concat(args, told)}
		switch absent := p.absent(atHand); {
		case absent != "":
			j.Missing = absent
		case len(a.only) > 0 && !slices.Contains(a.only, p.String()):
			j.Missing = campaign.NotYet
		}
		var err error
		if j.Stamp, err = c.Stamp(args, files...); err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	t.came = make([]*outcome, len(t.Pairs))
	c.Run(ctx, jobs, a.workers, func(i int, r *campaign.Result) {
		o := outcomeOf(r)
		t.came[order[i]] = o
		fmt.Printf("%-20s %s\n", t.Pairs[order[i]], o.brief())
	})
	return nil
}

// ended says whether a gate played all that it meant to: one that was interrupted, or ran out of time, goes on.
func ended(r *campaign.Result) bool {
	o := outcomeOf(r)
	return o.Page != nil && !o.cutShort()
}

// scenario is what each pair plays.
var scenario = filepath.Join("gate", gate.Change)
