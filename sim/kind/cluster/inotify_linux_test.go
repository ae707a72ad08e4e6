package cluster

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// TestInotifyIsCountedBefore: more nodes than this user may have inotify instances for are something that the machine lacks, with the setting's name.
func TestInotifyIsCountedBefore(t *testing.T) {
	before := inotifyInstances()
	fd := must.Get(unix.InotifyInit1(unix.IN_CLOEXEC))(t)
	defer unix.Close(fd)
	if after := inotifyInstances(); after == before {
		t.Errorf("%d instances before one is made, and after it", before)
	}
	var l *Lacking
	if err := enoughInotify(1 << 30); !errors.As(err, &l) || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=") {
		t.Errorf("for a billion nodes: %v", err)
	}
	if err := enoughInotify(-1 << 30); err != nil {
		t.Errorf("for none: %v", err)
	}
}
