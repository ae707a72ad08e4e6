package cri

import "testing"

// TestARecordThatDidNotLoadStaysHidden: nothing lists such a sandbox again, and what is in D state is not ended.
func TestARecordThatDidNotLoadStaysHidden(t *testing.T) {
	s := sandbox{listing: unlisted, processes: containers}
	if s.show(); !s.visible() {
		t.Error("a sandbox that is listed is not visible")
	}
	if s.end(); s.processes != noProcess {
		t.Error("containers do not end")
	}
	s.listing, s.processes = hidden, stuck
	if s.end(); s.processes != stuck {
		t.Error("a container in D state ends")
	}
	defer func() {
		if recover() == nil || s.visible() {
			t.Error("a sandbox whose record did not load is listed again")
		}
	}()
	s.show()
}
