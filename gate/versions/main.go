// Command versions plays incidents against released versions of a system that are at hand, each in a virtual machine of its own, and writes which
// held and which broke as docs/versions.md.
//
//	make versions                              the nine of docs/incidents.md against what ENILAB_SYSTEMS has of the versions that matter
//	make versions VERSIONS="1.5.4 1.22"        others; 1.22 is the newest one of 1.22
//
// A result stays in bin/versions, and what rests on the same enilab and the same files is not played again; with -keep, nothing that was ever played is,
// and the file names all the builds of enilab. Interrupted, it writes what is known, and goes on from there the next time. Why something breaks is said by
// notes.yaml, by hand; a note of something that does not break any more is told, and ends the command with exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/internal/campaign"
)

// incidents are the five write-ups of docs/incidents.md and the public ones that need nothing of enilab's own.
var incidents = []string{"socket-mismatch", "upgrade", "force-delete", "statefulset-name-reuse", "del-retries", "eni-leak", "subnet-exhausted", "subnet-full", "failed-add"}

// telling is the order in which incidents are played: those that told most of old versions begin, and what is cheap comes before what is not.
var telling = []string{"socket-mismatch", "force-delete", "del-retries", "statefulset-name-reuse", "failed-add", "eni-leak", "subnet-full", "subnet-exhausted", "upgrade"}

// versions are those of the write-ups, of the two changes after them that mattered most, and the newest ones of those that EKS supports.
const versions = "1.3.2 1.5.3 1.9.3 1.12.1 1.18 1.19 1.20 1.21 1.22 1.23"

// system is whose versions are played.
const system = "amazon-vpc-cni-k8s"

// notesPath is below the module's root, where the command runs.
const notesPath = "gate/versions/notes.yaml"

// patience is how long a run may take on this computer, with others beside it.
const patience = 30 * time.Minute

func main() {
	of := flag.String("versions", versions, "versions to play, with spaces or commas between them; 1.22 is the newest one at hand of 1.22")
	only := flag.String("incidents", strings.Join(incidents, " "), "incidents to play")
	workers := flag.Int("j", 2, "machines at once")
	to := flag.String("to", "docs/versions.md", "file to write")
	notes := flag.String("notes", notesPath, "why versions break what they break")
	c := campaign.Declare("versions", "play", "played", "ipamd and aws-cni")
	c.Main(func(ctx context.Context) error {
		t := &table{System: system, Versions: campaign.Words(*of), Incidents: campaign.Words(*only)}
		return t.run(ctx, c, *workers, *notes, *to)
	})
}

// run plays what has to be played and writes the file.
func (t *table) run(ctx context.Context, command *campaign.Command, workers int, notesFile, to string) error {
	switch {
	case workers < 1:
		return fmt.Errorf("-j %d: expected at least one machine", workers)
	case len(t.Versions) == 0 || len(t.Incidents) == 0:
		return errors.New("expected at least one version and one incident")
	}
	if why := campaign.Lacking(); why != "" {
		fmt.Println("skipped: " + why)
		return nil
	}
	notes, err := readNotes(notesFile)
	if err != nil {
		return err
	}
	if t.QEMU, err = campaign.QEMU(); err != nil {
		return err
	}
	atHand, err := campaign.AtHand(t.System)
	if err != nil {
		return err
	}
	t.Versions = newest(t.Versions, atHand)
	c, err := command.Open()
	if err != nil {
		return err
	}
	if err := t.play(ctx, c, workers, atHand); err != nil {
		return err
	}
	text, stale := t.text(notes)
	if err := campaign.Replace(to, text); err != nil {
		return err
	}
	if len(stale) > 0 {
		return errors.New("notes.yaml has notes of what does not break any more: " + strings.Join(stale, "; ") + ": take them out, or see what has changed")
	}
	return ctx.Err()
}

// newest says which version is meant by such as 1.22. One of which none is at hand stays what it is.
func newest(versions, atHand []string) (out []string) {
	for _, v := range versions {
		named := v
		for _, have := range atHand { // the newest one is the last
			if strings.HasPrefix(have, named+".") {
				v = have
			}
		}
		out = append(out, v)
	}
	return out
}

// play fills the cells.
func (t *table) play(ctx context.Context, c *campaign.Campaign, workers int, atHand []string) error {
	var jobs []campaign.Job
	var names []string // of cells
	for _, i := range ordered(t.Incidents) {
		for _, v := range t.Versions {
			file := filepath.Join("scenarios", i+".scn")
			j := campaign.Job{Name: filepath.Join(t.System+"@"+v, i), Limit: patience,
				Args: []string{"run", "--on", "netns", "--in", "vm", "--json", "--cni", t.System + "@" + v, file}}
			if !slices.Contains(atHand, v) {
				j.Missing = "ENILAB_SYSTEMS has no " + v
			}
			var err error
			if j.Stamp, err = c.Stamp(j.Args, file, filepath.Join(campaign.Folder(), t.System, v)); err != nil {
				return err
			}
			jobs, names = append(jobs, j), append(names, v+" "+i)
		}
	}
	t.cells = map[string]*cell{}
	c.Run(ctx, jobs, workers, func(i int, r *campaign.Result) {
		x := cellOf(r)
		t.cells[names[i]] = x
		fmt.Printf("%-32s %s\n", names[i], x.brief())
	})
	return nil
}

// ordered are incidents in the order in which they are played.
func ordered(incidents []string) []string {
	out := slices.Clone(incidents)
	slices.SortStableFunc(out, func(a, b string) int { return place(a) - place(b) })
	return out
}

func place(incident string) int {
	if i := slices.Index(telling, incident); i >= 0 {
		return i
	}
	return len(telling)
}
