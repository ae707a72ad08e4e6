package ipam_test

import (
	"github.com/enilab/enilab/impl/ipam"
	"testing"
)

func TestReady(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-0")
	t.Log(a)
	r := w.del(b)
	w.calm()
	if w.replies[r].Err != nil {
		t.Fatal(w.replies[r].Err)
	}
	w.survive()
}
