package ipam

import (
	"encoding/json"
	"testing"
	"time"
)

// TestEncodingOfAnENI: the parts that an ENI and the pool are made of do not show in what Encode writes, in which recordings begin. Whoever
// changes this changes encoding.
func TestEncodingOfAnENI(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{eni{}, `{"ID":"","MAC":"","Device":0,"Subnet":"","CIDR":"","Primary":"","Addresses":null,"Prefixes":null,"Status":"","Attachment":"",` +
			`"Instance":"","Owner":"","Created":0,"Groups":null,"NoManage":"","OwnerGone":false,"Near":false,"Kind":"","DOT":false,"Partial":false,` +
			`"Token":"","Stage":0,"Foreign":false,"Doing":0,"Count":0,"Before":null,"Wall":0,"Give":null,"Stored":false,"Extra":"",` +
			`"Wait":0,"Lost":false,"Tries":0,"Barred":0,"Next":0,"Since":0,"Tag":0,` +
			`"Has":[0,0,0,0,0],"Doubt":0,"Linked":false,"Unwired":false,"GroupsAt":0,"Trimming":false,"KernelOK":false,"RuntimeOK":false,` +
			`"Asking":false,"ByIMDS":0,"ByEC2":0,"Unlisted":0}`},
		{warmState{}, `{"At":0,"GrowAt":0,"Fails":0,"Ask":0,"LessSince":0,"Wanted":false,"Most":0,"MoreAt":0,"Probe":false,"Bars":0}`},
	} {
		got, err := json.Marshal(c.of)
		if err != nil || string(got) != c.want {
			t.Errorf("%T is encoded, under %s, as\n%s, expected\n%s, %v", c.of, encoding, got, c.want, err)
		}
	}
}

// TestACallOfThisDaemonIsItsOwn: after a creation in doubt, or a call of an earlier daemon, the next one is open no more; a creation that is repeated is.
func TestACallOfThisDaemonIsItsOwn(t *testing.T) {
	for a, open := range map[Action]bool{CreateENI: true, AssignIPs: false, AttachENI: false} {
		n := newborn(t)
		ix := n.enis.newENI(eni{Stage: Ready, mutation: mutation{Open: time.Minute}})
		n.driver.mutate(time.Second, ix, a)
		if e := &n.ENIs[ix]; e.Doing != a || e.Open > 0 != open {
			t.Errorf("%v: it is doing %v, open until %v", a, e.Doing, e.Open)
		}
	}
}
