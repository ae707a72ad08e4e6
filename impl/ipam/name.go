package ipam

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/enilab/enilab/impl/dataplane"
)

// Req identifies a request of the plugin, unique in the life of a daemon.
type Req uint64

// ID identifies an effect that awaits its outcome, unique in the life of a daemon; 0 is none.
type ID uint64

// Attachment is the exact key of every mutation (rule E): nothing releasable is found by a pod's name.
type Attachment struct{ Network, ContainerID, IfName string }

func (a Attachment) String() string {
	return string(a.append(make([]byte, 0, 64)))
}

func (a Attachment) shortID() string { return a.ContainerID[:min(len(a.ContainerID), 8)] }

// Plain refuses names that could not stand in a link's alias, where the key is kept with spaces between its parts. Empty ones may.
func (a Attachment) Plain() error {
	for _, s := range [...]string{a.Network, a.ContainerID, a.IfName} {
		if len(s) > dataplane.MaxAlias {
			return fmt.Errorf("expected names of at most %d bytes, found one of %d", dataplane.MaxAlias, len(s))
		}
		for _, c := range s {
			if c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsControl(c) {
				return fmt.Errorf("expected a name without spaces and control characters, found %q", s)
			}
		}
	}
	return nil
}

// append is String at the end of b.
func (a *Attachment) append(b []byte) []byte {
	b = append(append(b, a.Network...), '/')
	b = append(append(b, a.shortID()...), '/')
	return append(b, a.IfName...)
}

// Pod names a pod; UID tells incarnations of one name apart.
type Pod struct{ Namespace, Name, UID string }

func (p Pod) String() string { return p.Namespace + "/" + p.Name }
