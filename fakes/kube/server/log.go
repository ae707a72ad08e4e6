package server

// logLimit is how many changes are remembered: a watch from before them must begin anew. nodeLimit bounds the
// names that are asked for.
const (
	logLimit  = 100
	nodeLimit = 10000
)

// firstVersion is larger than 1, so that a client that makes versions up is found out.
const firstVersion = 1000

// log is the history of nodes as the server saw it.
type log struct {
	version uint64 // of the latest change
	oldest  uint64 // changes after this one are all in events
	events  []change
	known   map[string]*entry
}

type entry struct {
	turn    chan struct{}
	info    NodeInfo
	exists  bool
	version uint64
}

// change is one event of a watch.
type change struct {
	name    string
	kind    string // ADDED, MODIFIED, DELETED
	version uint64
	object  *node
}

// seen is a node at a version of the whole server. Its object is nil when there is no such node.
type seen struct {
	version uint64
	object  *node
}

func newLog() log {
	return log{version: firstVersion, oldest: firstVersion, known: map[string]*entry{}}
}

// turn makes looks at one node take turns.
func (l *log) turn(name string) chan struct{} {
	e := l.known[name]
	if e == nil {
		if len(l.known) >= nodeLimit {
			l.forget()
		}
		e = &entry{turn: make(chan struct{}, 1)}
		l.known[name] = e
	}
	return e.turn
}

// forget drops names that were asked for and never existed.
func (l *log) forget() {
	for name, e := range l.known {
		if !e.exists && e.version == 0 && len(e.turn) == 0 {
			delete(l.known, name)
		}
	}
}

// note compares what the Backend says with what it said last.
func (l *log) note(a *api, name string, v NodeInfo, exists bool) seen {
	e := l.known[name]
	if e == nil { // forgotten meanwhile
		l.turn(name)
		e = l.known[name]
	}
	if exists != e.exists || exists && !v.same(&e.info) {
		kind := "MODIFIED"
		switch {
		case !exists:
			kind, v = "DELETED", e.info
		case !e.exists:
			kind = "ADDED"
		}
		l.version++
		e.info, e.exists, e.version = v, exists, l.version
		l.add(change{name, kind, l.version, a.nodeObject(name, v, l.version)})
	}
	s := seen{version: l.version}
	if exists {
		s.object = a.nodeObject(name, e.info, e.version)
	}
	return s
}

func (l *log) add(c change) {
	if len(l.events) == logLimit {
		l.oldest = l.events[0].version
		l.events = l.events[1:]
	}
	l.events = append(l.events, c)
}

// since are the changes of a node after a version; false when some of them may be forgotten.
func (l *log) since(name string, version uint64) ([]change, bool) {
	if version < l.oldest {
		return nil, false
	}
	var out []change
	for _, c := range l.events {
		if c.name == name && c.version > version {
			out = append(out, c)
		}
	}
	return out, true
}
