package ipc

import (
	"os/signal"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestFullDiskLeavesNoHalfIntent: what cannot be written whole is an error and leaves nothing, and the DEL that was noted before stays.
func TestFullDiskLeavesNoHalfIntent(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, of("a"))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	full := limit
	full.Cur = 8 // bytes
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	errs := []error{WriteIntent(dir, of("a")), WriteIntent(dir, of("b"))}
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	for _, err := range errs {
		if err == nil {
			t.Error("half an intent is written, without an error")
		}
	}
	list, bad := read(t, dir)
	if len(list) != 1 || list[0].Attachment != of("a").Attachment || len(bad) > 0 {
		t.Errorf("the folder holds %v, and %v that cannot be read; expected the first intent", list, bad)
	}
}
