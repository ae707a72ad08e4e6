package netns

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/systems"
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

// keysOf are the settings that a line gives the daemons: a config's, or a restart's.
func keysOf(l *scn.Line) (keys []string) {
	switch stmt := l.Stmt.(type) {
	case *scn.Config:
		for _, kv := range stmt.Args {
			keys = append(keys, kv.Key)
		}
	case *scn.At:
		if stmt.Action == nil {
			return nil
		}
		if act, bad := verb.Bind(stmt.Action); bad == nil {
			for _, arg := range act.Keys {
				keys = append(keys, arg.Key)
			}
		}
	}
	return keys
}

func cannotDo(s *systems.System, a *scn.Action) error {
	act, bad := verb.Bind(a)
	if bad != nil {
		return nil // a mistake of the scenario's, said elsewhere
	}
	name, needs := s.Name+" "+s.Version, act.Of.Needs
	switch {
	case needs.Daemon && s.Daemon == nil:
		return fmt.Errorf("%s has no daemon", name)
	case needs.Runtime && (s.Daemon == nil || s.Runtime.API == "none"):
		return fmt.Errorf("%s asks no runtime", name)
	case needs.Ours != "" && act.System() == "":
		return fmt.Errorf("%s: %s", name, needs.Ours)
	}
	return nil
}

// unknownSettings are those that mean nothing to a system.
func unknownSettings(s *systems.System, keys []string) []string {
	return slices.DeleteFunc(keys, func(k string) bool { return s.Daemon != nil && slices.Contains(s.Daemon.Settings, k) })
}
