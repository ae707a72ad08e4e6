package daemon

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// intents are the DELs that plugins left while no daemon listened.
type intents struct {
	reading, again bool // the folder is being read; and has to be once more
	// By attachment, not by file: one that is being removed has another name for a moment.
	doing map[ipam.Attachment]bool
	ended map[ipam.Attachment]bool // since the reading began, which may have seen their files
	tries map[ipam.Attachment]int  // that failed
	bad   map[string]bool          // files that were complained about
}

func (d *daemon) intentDir() string { return filepath.Join(d.c.RunDir, intentDir) }

// watchIntents reads the folder now, whenever something is put into it, and now and then although nothing was heard.
func (d *daemon) watchIntents() {
	d.intents.doing, d.intents.bad, d.intents.tries = map[ipam.Attachment]bool{}, map[string]bool{}, map[ipam.Attachment]int{}
	d.followIntents()
	d.scanEver()
}

func (d *daemon) scanEver() {
	d.scanIntents()
	d.after(d.clock.Now()+intentScan, d.scanEver)
}

// followIntents hears of new files. When it cannot, it begins again; meanwhile scanEver finds them.
func (d *daemon) followIntents() {
	d.go_(func() {
		err := d.hearIntents()
		if d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("the folder of DEL intents is not watched; it is read now and then", "err", err)
			d.after(d.clock.Now()+intentScan, d.followIntents)
		})
	})
}

func (d *daemon) hearIntents() error {
	if err := os.MkdirAll(d.intentDir(), 0o755); err != nil {
		return err
	}
	return watchFolder(d.ctx, d.intentDir(), func() { d.post(d.scanIntents) }, func(e fsnotify.Event) (bool, error) {
		if e.Name == d.intentDir() && e.Has(fsnotify.Remove|fsnotify.Rename) {
			return false, os.ErrNotExist
		}
		return e.Has(fsnotify.Create), nil // a rename into the folder
	})
}

// watchFolder calls changed once it watches the folder, for what came before, and after each event that concerns it. It
// ends with the context, or with an error where the folder cannot be watched any more.
func watchFolder(ctx context.Context, folder string, changed func(), concerns func(fsnotify.Event) (bool, error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add(folder); err != nil {
		return err
	}
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			return err
		case e, ok := <-w.Events:
			if !ok {
				return os.ErrClosed
			}
			concerned, err := concerns(e)
			if err != nil {
				return err
			}
			if concerned {
				changed()
			}
		}
	}
}

// scanIntents reads the folder, once at a time.
func (d *daemon) scanIntents() {
	if d.stopping {
		return
	}
	if d.intents.reading {
		d.intents.again = true
		return
	}
	d.intents.reading, d.intents.again, d.intents.ended = true, false, map[ipam.Attachment]bool{}
	d.local++
	d.go_(func() {
		list, bad, err := ipc.ReadIntents(d.intentDir())
		d.post(func() {
			d.local--
			d.intents.reading = false
			if err != nil {
				d.log.Warn("DEL intents cannot be read; ipamd tries again", "err", err)
			}
			d.complain(bad)
			for i := range list {
				if !d.intents.ended[list[i].Attachment] {
					d.tryIntent(&list[i])
				}
			}
			if d.intents.again {
				d.scanIntents()
			}
		})
	})
}

// complain says of each file once that it is no intent.
func (d *daemon) complain(bad []ipc.Unreadable) {
	for _, b := range bad {
		if !d.intents.bad[b.Name] && len(d.intents.bad) < maxInbox {
			d.intents.bad[b.Name] = true
			d.log.Error("a file in the folder of DEL intents cannot be read and stays there", "file", b.Name, "err", b.Err)
		}
	}
}

// tryIntent is the DEL, unless it is under way.
func (d *daemon) tryIntent(e *ipc.IntentFile) {
	if d.stopping || d.intents.doing[e.Attachment] {
		return
	}
	d.intents.doing[e.Attachment] = true
	d.lastReq++
	d.open[d.lastReq] = &request{intent: e}
	d.step(ipam.Del{Req: d.lastReq, Att: e.Attachment, Pod: e.Pod, Deadline: d.clock.Now() + defaultTimeout, Version: e.Version, Intent: true})
}

// growing is how long rests what has failed so often before.
func growing(first time.Duration, failed int) time.Duration {
	return min(first<<min(failed, 10), maxRetry)
}

// intentDone takes the file away when its DEL has succeeded (rule F), and tries again otherwise.
func (d *daemon) intentDone(e *ipc.IntentFile, failed *ipam.Error) {
	again := func() {
		pause := growing(intentRetry, d.intents.tries[e.Attachment])
		d.intents.tries[e.Attachment]++
		d.after(d.clock.Now()+pause, func() {
			delete(d.intents.doing, e.Attachment)
			d.tryIntent(e)
		})
	}
	if failed != nil {
		d.log.Info("a DEL intent is tried again", "attachment", e.Attachment, "err", failed)
		again()
		return
	}
	if d.policyMode(ipam.VerbDel, e.Attachment, e.Pod) != "" {
		d.forget(e, again)
		return
	}
	d.removeIntent(e, again)
}

// removeIntent takes the file away.
func (d *daemon) removeIntent(e *ipc.IntentFile, again func()) {
	d.local++
	d.go_(func() {
		err := ipc.RemoveIntent(d.intentDir(), *e)
		d.post(func() {
			d.local--
			if err != nil {
				d.log.Warn("a DEL intent is done and its file cannot be removed; ipamd tries again", "attachment", e.Attachment, "err", err)
				again()
				return
			}
			d.log.Info("a DEL intent is done", "attachment", e.Attachment)
			delete(d.intents.doing, e.Attachment)
			delete(d.intents.tries, e.Attachment)
			if d.intents.reading {
				d.intents.ended[e.Attachment] = true
			}
			d.scanIntents() // for one that came in its place
		})
	})
}
