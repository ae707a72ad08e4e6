package netns

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/systems"
)

// ofDaemon are the verbs that are about a daemon, and ofOurs those about what is ours alone.
var (
	ofDaemon = []string{"kill", "kill-at", "hold", "unhold", "restart"}
	ofOurs   = map[string]string{
		"lose-records": "where it keeps what it knows is not said",
		"lose-alias":   "aliases of links are enilab's",
		"gc":           "its plugin is not known to have the verb GC",
	}
)

// cannot says what a line asks for that a system lacks.
func cannot(s *systems.System, l *scn.Line) error {
	switch stmt := l.Stmt.(type) {
	case *scn.Config:
		if unknown := unknownSettings(s, keysOf(l)); len(unknown) > 0 {
			return errors.New(s.Name + " " + s.Version + " does not know " + strings.Join(unknown, ", "))
		}
	case *scn.At:
		switch {
		case stmt.Action != nil:
			return cannotDo(s, stmt.Action)
		case s.Daemon == nil && stmt.Check != nil && strings.HasPrefix(stmt.Check.Metric, "daemon."):
			return fmt.Errorf("%s %s has no daemon", s.Name, s.Version)
		}
	}
	return nil
}

var _ sim.Ignorant = (*World)(nil)

// Unknown is what a description that lists settings lacks. One that lists none says nothing about them, and excuses nothing.
func (w *World) Unknown(l *scn.Line) (system string, settings []string) {
	s := w.parts.System
	if s == nil || s.Daemon == nil || len(s.Daemon.Settings) == 0 {
		return "", nil
	}
	return s.Name + " " + s.Version, unknownSettings(s, keysOf(l))
}

// keysOf are the settings that a line gives the daemons: a config's, or a restart's.
func keysOf(l *scn.Line) (keys []string) {
	switch stmt := l.Stmt.(type) {
	case *scn.Config:
		for _, kv := range stmt.Args {
			keys = append(keys, kv.Key)
		}
	case *scn.At:
		if stmt.Action != nil && stmt.Action.Verb == "restart" {
			for _, arg := range stmt.Action.Args {
				keys = append(keys, arg.Key)
			}
		}
	}
	return keys
}

func cannotDo(s *systems.System, a *scn.Action) error {
	name := s.Name + " " + s.Version
	switch {
	case s.Daemon == nil && slices.Contains(ofDaemon, a.Verb):
		return fmt.Errorf("%s has no daemon", name)
	case a.Verb == "socket" && (s.Daemon == nil || s.Runtime.API == "none"):
		return fmt.Errorf("%s asks no runtime", name)
	case a.Verb == "upgrade" && sim.Exchanges(a) == "":
		return fmt.Errorf("versions 1 and 2 are of enilab's records and protocol, and this is %s", name)
	case ofOurs[a.Verb] != "":
		return fmt.Errorf("%s: %s", name, ofOurs[a.Verb])
	}
	return nil
}

// unknownSettings are those that mean nothing to a system.
func unknownSettings(s *systems.System, keys []string) []string {
	return slices.DeleteFunc(keys, func(k string) bool { return s.Daemon != nil && slices.Contains(s.Daemon.Settings, k) })
}
