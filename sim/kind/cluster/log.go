package cluster

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// logger hands kind's own messages on, without its terminal's ornaments.
type logger struct{ to func(string) }

func (l *logger) say(s string) {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r > 0x7f {
			return -1
		}
		return r
	}, s))
	if s != "" && !strings.Contains(s, "KIND_EXPERIMENTAL") && !strings.HasPrefix(s, "WARNING: ") {
		l.to("kind: " + s)
	}
}

func (l *logger) Warn(s string)               { l.say(s) }
func (l *logger) Warnf(s string, args ...any) { l.say(fmt.Sprintf(s, args...)) }
func (l *logger) Error(s string)              { l.say(s) }
func (l *logger) Errorf(s string, a ...any)   { l.say(fmt.Sprintf(s, a...)) }
func (l *logger) V(v log.Level) log.InfoLogger {
	return infoLogger{l, v <= 0}
}

type infoLogger struct {
	l  *logger
	on bool
}

func (i infoLogger) Info(s string) {
	if i.on {
		i.l.say(s)
	}
}

func (i infoLogger) Infof(s string, args ...any) {
	if i.on {
		i.l.say(fmt.Sprintf(s, args...))
	}
}

func (i infoLogger) Enabled() bool { return i.on }
