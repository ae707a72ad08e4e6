package linux

import (
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// fault is an operation that failed for a reason of ours: what was found instead.
type fault struct {
	kind dataplane.ErrorKind
	text string
}

func (f *fault) Error() string { return f.text }

func failed(kind dataplane.ErrorKind, text string) error { return &fault{kind, text} }

var errNoLink = failed(dataplane.NoLink, "no such link")

// kindOf is an error in the words its caller decides by.
func kindOf(err error) dataplane.ErrorKind {
	switch err := err.(type) {
	case *fault:
		return err.kind
	case *netlink.Refusal:
		switch err.Errno {
		case unix.EEXIST:
			return dataplane.Exists
		case unix.ENODEV:
			return dataplane.NoLink
		case unix.ENETUNREACH:
			return dataplane.Unreachable
		case unix.ENETDOWN:
			return dataplane.LinkDown
		case unix.EINVAL, unix.ERANGE:
			return dataplane.Invalid
		}
	}
	return dataplane.Other
}
