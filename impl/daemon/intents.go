package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
)

// intents are the DELs that plugins left while no daemon listened.
type intents struct {
	*core
	requests *requests
	agent    *agent

	reading, again bool // the folder is being read; and has to be once more
	// By attachment, not by file: one that is being removed has another name for a moment.
	doing map[ipam.Attachment]bool
	ended map[ipam.Attachment]bool // since the reading began, which may have seen their files
	tries map[ipam.Attachment]int  // that failed
	bad   map[string]bool          // files that were complained about
}

func (c *Config) intentDir() string { return filepath.Join(c.RunDir, intentDir) }

// begin reads the folder now, whenever something is put into it, and now and then although nothing was heard.
func (is *intents) begin() {
	is.watch(intentScan, is.hear, func(err error) {
		is.log.Warn("the folder of DEL intents is not watched; it is read now and then", "err", err)
	})
	is.scanEver()
}

func (is *intents) scanEver() {
	is.scan()
	is.after(is.clock.Now()+intentScan, is.scanEver)
}

// hear hears of new files. When it cannot, it begins again; meanwhile scanEver finds them.
func (is *intents) hear() error {
	if err := os.MkdirAll(is.c.intentDir(), 0o755); err != nil {
		return err
	}
	return watchFolder(is.ctx, is.c.intentDir(), func() { is.post(is.scan) }, func(e fsnotify.Event) (bool, error) {
		if e.Name == is.c.intentDir() && e.Has(fsnotify.Remove|fsnotify.Rename) {
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
		case e := <-w.Events:
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

// scan reads the folder, once at a time.
func (is *intents) scan() {
	if is.stopping {
		return
	}
	if is.reading {
		is.again = true
		return
	}
	is.reading, is.again, is.ended = true, false, map[ipam.Attachment]bool{}
	is.work(func() func() {
		list, bad, err := ipc.ReadIntents(is.c.intentDir())
		return func() {
			is.reading = false
			if err != nil {
				is.log.Warn("DEL intents cannot be read; ipamd tries again", "err", err)
			}
			is.complain(bad)
			for i := range list {
				if !is.ended[list[i].Attachment] {
					is.try(&list[i])
				}
			}
			if is.again {
				is.scan()
			}
		}
	})
}

// complain says of each file once that it is no intent.
func (is *intents) complain(bad []ipc.Unreadable) {
	for _, b := range bad {
		if !is.bad[b.Name] && len(is.bad) < maxInbox {
			is.bad[b.Name] = true
			is.log.Error("a file in the folder of DEL intents cannot be read and stays there", "file", b.Name, "err", b.Err)
		}
	}
}

// try is the DEL, unless it is under way.
func (is *intents) try(e *ipc.IntentFile) {
	if is.stopping || is.doing[e.Attachment] {
		return
	}
	is.doing[e.Attachment] = true
	req := is.requests.register(&request{done: func(failed *ipam.Error) { is.done(e, failed) }})
	is.step(ipam.Del{Req: req, Att: e.Attachment, Pod: e.Pod, Deadline: is.clock.Now() + defaultTimeout, Version: e.Version, Intent: true})
}

// growing is how long rests what has failed so often before.
func growing(first time.Duration, failed int) time.Duration {
	return min(first<<min(failed, 10), maxRetry)
}

// done takes the file away when its DEL has succeeded (rule F), and tries again otherwise.
func (is *intents) done(e *ipc.IntentFile, failed *ipam.Error) {
	again := func() {
		pause := growing(intentRetry, is.tries[e.Attachment])
		is.tries[e.Attachment]++
		is.after(is.clock.Now()+pause, func() {
			delete(is.doing, e.Attachment)
			is.try(e)
		})
	}
	if failed != nil {
		is.log.Info("a DEL intent is tried again", "attachment", e.Attachment, "err", failed)
		again()
		return
	}
	if is.agent.hears(ipam.VerbDel, e.Attachment, e.Pod) != "" {
		is.forget(e, again)
		return
	}
	is.remove(e, again)
}

// remove takes the file away.
func (is *intents) remove(e *ipc.IntentFile, again func()) {
	is.work(func() func() {
		err := ipc.RemoveIntent(is.c.intentDir(), *e)
		return func() {
			if err != nil {
				is.log.Warn("a DEL intent is done and its file cannot be removed; ipamd tries again", "attachment", e.Attachment, "err", err)
				again()
				return
			}
			is.log.Info("a DEL intent is done", "attachment", e.Attachment)
			delete(is.doing, e.Attachment)
			delete(is.tries, e.Attachment)
			if is.reading {
				is.ended[e.Attachment] = true
			}
			is.scan() // for one that came in its place
		}
	})
}

// forget tells the agent that a pod of a DEL intent is gone, and ends the intent when that has been said, or no agent
// is there to hear it.
func (is *intents) forget(e *ipc.IntentFile, again func()) {
	is.go_(func() {
		err := netpolicy.Forget(is.ctx, is.agent.socket(), e.Pod)
		is.post(func() {
			switch {
			case err == nil, errors.Is(err, netpolicy.ErrAbsent):
			case errors.Is(err, netpolicy.ErrNotListening) && is.tries[e.Attachment] >= agentGone:
				is.log.Warn("the network policy agent is gone, and was not told of a pod's end", "pod", e.Pod, "err", err)
			default:
				is.log.Warn("the network policy agent was not told of a pod's end; ipamd tries again", "pod", e.Pod, "err", err)
				again()
				return
			}
			is.remove(e, again)
		})
	})
}
